"""Puts faults into the library, one at a time, and counts the faults that the unit tests notice.

usage: mutation.py SOURCE_ROOT [FAULTS] [--seed NUMBER] [--room FOLDER] [--slowest SECONDS]

FAULTS is the number of faults. They are the same in each run: the first of all that places.py can make, in the order
of their names, without those of unnoticeable.txt. With a seed they are others, which the number decides. Weakened
memory orders are not among them, because tests cannot notice them on most processors; tests/models checks them. Results
of earlier runs are reused while the test program that noticed the fault is unchanged. Exits with 1 if less than 97 %
are noticed. With a seed 90 % are enough, because nobody improves the tests for those faults before their first run.
"""

import argparse
import collections
import hashlib
import json
import os
import re
import resource
import sys
import time

import build
import trial

FLOOR = 0.97
FLOOR_WITH_SEED = 0.90
MEMORY = 8 << 30  # bytes; a fault may request all memory


def digest(*commands):
    """Returns a digest of the files that the commands name: the programs, and their inputs."""
    together = hashlib.sha256()
    for path in sorted({part for command in commands for part in command if os.path.isfile(part)}):
        with open(path, "rb") as file:
            together.update(file.read())
    return together.hexdigest()[:16]


def unnoticeable(known):
    """Returns the names in the list. A line that begins with a name is an entry; other lines are remarks."""
    with open(os.path.join(build.HERE, "unnoticeable.txt"), encoding="utf-8") as file:
        names = set(re.findall(r"^([0-9a-f]{8}) ", file.read(), re.M))
    gone = names - {place.name for place in known}
    if gone:
        sys.exit(f"unnoticeable.txt has names of faults that do not exist: {' '.join(sorted(gone))}")
    return names


class Results:
    """Stores the program that noticed each fault. A result is valid while that program, which contains the library, is
    unchanged. If no program noticed the fault, all programs must be unchanged.
    """

    def __init__(self, builds):
        self.file = os.path.join(builds.folder, "results.json")
        programs = builds.programs()
        self.stamps = {name: digest(command) for name, command in programs.items()} | {"": digest(*programs.values())}
        known = json.load(open(self.file)) if os.path.exists(self.file) else {}
        self.known = {name: result for name, result in known.items()
                      if result["stamp"] == self.stamps.get(result["by"])}

    def add(self, name, by, how, seconds):
        self.known[name] = {"by": by, "how": how, "seconds": seconds, "stamp": self.stamps[by]}
        with open(self.file + ".new", "w") as file:
            json.dump(self.known, file, indent=0)
        os.replace(self.file + ".new", self.file)


def choose(builds, trials, count, room, order, left_out):
    """Returns the first faults in the order, without the names that are left out, code that is not compiled, and faults
    that do not compile.
    """
    reached = {number for case in trials.cases for number in case["reached"]}
    chosen = []
    for place in sorted(builds.places, key=lambda place: order(place.name)):
        if len(chosen) == count:
            break
        if not place.number or place.name in left_out or not place.path.startswith(room):
            continue
        if place.number in reached or builds.is_compiled(place):
            chosen.append(place)
    return chosen


def report(chosen, results, seconds, floor):
    def result_of(place):
        return results.known[place.name]

    noticed = [place for place in chosen if result_of(place)["by"]]
    for title, places, name_of in [
        ("by room", chosen, lambda place: os.path.dirname(place.path)),
        ("by kind", chosen, lambda place: place.kind),
        ("first noticed by", noticed, lambda place: result_of(place)["by"]),
        ("how the program failed", noticed, lambda place: result_of(place)["how"]),
    ]:
        print(f"\n{title}")
        those = collections.Counter(map(name_of, noticed))
        for name, count in sorted(collections.Counter(map(name_of, places)).items()):
            print(f"  {name:<40} {those[name]:>4} of {count:>4}")
    print("\nnot noticed" * (len(noticed) < len(chosen)))
    for place in chosen:
        if not result_of(place)["by"]:
            print(f"  {place.name} {place.path}:{place.line}: {place.kind}: {place.before} -> "
                  f"{place.after or '(nothing)'}\n           {place.code}")
    share = len(noticed) / max(len(chosen), 1)
    print(f"\n{len(noticed)} of {len(chosen)} faults noticed, {share:.1%}, in {seconds:.0f} s")
    return share < floor


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("root")
    options.add_argument("faults", nargs="?", type=int, default=240)
    options.add_argument("--seed", type=int, metavar="NUMBER", help="other faults than without a seed")
    options.add_argument("--room", default="", metavar="FOLDER", help="only faults below this folder of the root")
    options.add_argument("--slowest", type=float, default=60, metavar="SECONDS", help="leave out slower test cases")
    wanted = options.parse_args()
    os.nice(19)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    begun = time.monotonic()

    builds = build.Build(wanted.root)
    left_out = unnoticeable(builds.places)
    builds.make()
    trials = trial.Trials(builds.folder, builds.programs(), wanted.slowest)
    results = Results(builds)
    chosen = choose(builds, trials, wanted.faults, wanted.room, str, left_out)
    if wanted.seed is not None:
        left_out |= {place.name for place in chosen}
        chosen = choose(builds, trials, wanted.faults, wanted.room,
                        lambda name: hashlib.sha256(f"{wanted.seed} {name}".encode()).digest(), left_out)
    missing = [place for place in chosen if place.name not in results.known]
    print(f"{len(chosen)} faults, {len(chosen) - len(missing)} of them tried before", flush=True)

    def attempt(place):
        since = time.monotonic()
        by, how = trials.notice(place.number)
        return place, by, how, time.monotonic() - since

    for count, (place, by, how, seconds) in enumerate(trial.in_parallel(attempt, missing), 1):
        results.add(place.name, by, how, seconds)
        print(f"{count}/{len(missing)} {place.name} {place.path}:{place.line} {how or 'SURVIVED'} {by} {seconds:.0f} s",
              flush=True)
    floor = FLOOR if wanted.seed is None else FLOOR_WITH_SEED
    return report(chosen, results, time.monotonic() - begun, floor)


if __name__ == "__main__":
    sys.exit(main())
