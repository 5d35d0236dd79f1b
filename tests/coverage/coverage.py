"""Counts the lines and branches of the library that a coverage build has reached.

usage: coverage.py SOURCE_ROOT BUILD_FOLDER LINES BRANCHES

Prints the lines and branches that were not reached. Fails if fewer than LINES percent of the lines or BRANCHES percent
of the branches were reached. The branches in unreached.txt, which unit tests cannot reach, do not count. Fails if an
entry's text is no longer in the source. Names an entry whose branches were all reached, unless its reason says that
some runs reach them.

Reads gcov's JSON, which names each branch that only an exception takes. Its text, which gcovr reads for GCC 12 and 13,
names such a branch only if a thread came there, and leaves some functions out.
"""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys

LIBRARY = "hashed_wheel_timer/"
# Each of some hundred instances of these has branches of its own.
LEFT_OUT = re.compile(r"/detail/asio/(cancel_after|loop|operation|wait)\.h$")
# An assertion never fails, and only an exception comes to a handler. Neither is a decision of the code.
NO_DECISION = re.compile(r"\bassert\(|\bcatch \(")
ENTRY = re.compile(r"([\w/]+\.(?:h|cpp)): (?:\[(\d+)\] )?(.*)")
# The reasons of branches that some runs, or runs on other machines, reach.
MAY_BE_REACHED = ("By chance: ", "Other machines and systems: ")


def gcov(build):
    """Yields (path, line, number of instances of its function). The number is 0 if the function is always inlined,
    because then its callers have copies."""
    counts = [os.path.join(at, name) for at, _, names in os.walk(build) for name in names if name.endswith(".gcda")]
    for some in (counts[first:first + 20] for first in range(0, len(counts), 20)):
        command = ["gcov", "--json-format", "--stdout", "--branch-probabilities", *some]
        output = subprocess.run(command, cwd=build, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout
        for unit in map(json.loads, output.splitlines()):
            for file in unit["files"]:
                path = os.path.normpath(os.path.join(build, file["file"]))
                for line in file["lines"]:
                    yield path, line, 1 if "function_name" in line else instances(file, line["line_number"])


def instances(file, line):
    """Returns the number of instances of the innermost function that contains the line."""
    around = collections.Counter((function["start_line"], function["start_column"]) for function in file["functions"]
                                 if function["start_line"] <= line <= function["end_line"])
    return around[max(around)] if around else 0


def decisions(branches):
    """Returns the counts of the branches, without those of a call that may throw: gcov has the branch of the exception
    right after the branch of the return."""
    counts = []
    for branch in branches:
        if branch["throw"]:
            counts.pop()
        else:
            counts.append(max(branch["count"], 0))  # a fork may copy counts in the middle of a step of another thread
    return counts


class Line:
    """Sums the instances of a line. The instances of a template have the same branches. So a branch counts as reached
    if it is reached in one of them."""
    def __init__(self):
        self.count = 0
        self.instances, self.copies = [], []

    def add(self, line, in_a_row):
        self.count += max(line["count"], 0)
        if counts := decisions(line["branches"]):
            size = len(counts) // max(in_a_row, 1) or 1
            (self.instances if in_a_row else self.copies).append(counts[:size])
            self.instances += [counts[first:first + size] for first in range(size, len(counts), size)]

    def branches(self):
        size = min(map(len, self.instances + self.copies), default=0)
        whole = max(map(len, self.instances), default=size)
        sums = [0] * whole
        for counts, width in [(each, whole) for each in self.instances] + [(each, size) for each in self.copies]:
            for i, count in enumerate(counts):
                sums[i % width] += count
        return sums


def read_list(path):
    """Returns the entries as (file, text, number of branches, whether a run may reach them). A paragraph begins with
    its reason."""
    entries = []
    for paragraph in path.read_text(encoding="utf-8").split("\n\n")[1:]:
        found = [ENTRY.fullmatch(line) for line in paragraph.strip().splitlines()]
        while found[0] is None:
            found.pop(0)
        may_be = paragraph.startswith(MAY_BE_REACHED)
        entries += [(LIBRARY + entry[1], entry[3], int(entry[2] or 1), may_be) for entry in found]
    return entries


def main():
    root, build = map(os.path.realpath, sys.argv[1:3])
    least_lines, least_branches = map(float, sys.argv[3:])
    lines = collections.defaultdict(Line)
    for path, line, in_a_row in gcov(build):
        file = os.path.relpath(path, root)
        if file.startswith(LIBRARY) and not LEFT_OUT.search(file):
            lines[file, line["line_number"]].add(line, in_a_row)
    files = {file for file, _ in lines}
    sources = {file: pathlib.Path(root, file).read_text(encoding="utf-8").splitlines() for file in files}

    missing, all_branches = {}, 0
    for (file, number), line in sorted(lines.items()):
        text = sources[file][number - 1]
        # A line of braces has only branches that the compiler adds.
        if re.search(r"\w", text) and not NO_DECISION.search(text):
            branches = line.branches()
            all_branches += len(branches)
            if 0 in branches:
                missing[file, number] = branches.count(0)

    problems = []
    for file, text, branches, may_be_reached in read_list(pathlib.Path(__file__).with_name("unreached.txt")):
        places = [(file, i) for i, line in enumerate(sources.get(file, []), 1) if text in line]
        here = [place for place in places if missing.get(place)]
        if not places:
            problems.append(f"{file}: unreached.txt has a line that is not there: {text}")
        elif not here and not may_be_reached:
            problems.append(f"{file}:{places[0][1]}: reached, but unreached.txt lists it: {text}")
        for place in here:
            listed = min(branches, missing[place])
            branches, all_branches = branches - listed, all_branches - listed
            missing[place] -= listed

    without = [place for place, line in sorted(lines.items()) if line.count == 0]
    problems += [f"{file}:{number}: not reached: {sources[file][number - 1].strip()}" for file, number in without]
    problems += [f"{file}:{number}: {count} branches not reached: {sources[file][number - 1].strip()}"
                 for (file, number), count in missing.items() if count != 0]
    print("\n".join(problems))
    held = not any("a line that is not there" in problem for problem in problems)
    for name, whole, absent, least in [("lines", len(lines), len(without), least_lines),
                                       ("branches", all_branches, sum(missing.values()), least_branches)]:
        percent = 100 * (whole - absent) / whole
        print(f"{name}: {percent:.1f}% ({whole - absent} out of {whole}; expected: at least {least:g}%)")
        held = held and percent >= least
    sys.exit(not held)


if __name__ == "__main__":
    main()
