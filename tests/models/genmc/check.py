#!/usr/bin/env python3
"""Runs the programs beside this file under GenMC, as they are. Then weakens each order that a program must notice.

usage: check.py ROOT [PROGRAM...]

The environment variable GENMC names the program genmc. Without it, genmc is searched for in PATH.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import orders  # noqa: E402

# Inlined, and values in registers, because GenMC cannot read a part of a larger write. Without the functions that the
# program does not call, because GenMC fails on some instructions even if they never run. No other pass, because one
# might move a load before an operation that guards it.
PASSES = [
    "-inline-threshold=1000000",
    "-passes=internalize<preserve-gv=main>,function(sroa),cgscc(inline),function(sroa),globaldce",
]
# Lines, but not types: GenMC fails on some when it names the variable of a race.
FLAGS = ["-std=c++20", "-O1", "-Xclang", "-disable-llvm-passes", "-gline-tables-only", "-fno-c++-static-destructors"]
# RC11, and no other model in its place where the program would allow it. Waits are marked, so that GenMC need not find
# them.
OPTIONS = ["--rc11", "--disable-mm-detector", "--disable-spin-assume", "--check-liveness", "--disable-estimation"]
# Programs whose global objects keep memory. The others must free all. GenMC only warns about memory that stays.
KEEP_MEMORY = ["inbox", "relisting"]


def tool(name, version):
    """GenMC reads files of the LLVM that it was built with."""
    found = shutil.which(f"{name}-{version}") or shutil.which(name)
    return found or sys.exit(f"no {name} of LLVM {version}, with which GenMC was built")


class Checker:
    def __init__(self, root, genmc):
        self.root, self.genmc = root, genmc
        about = subprocess.run([genmc, "--version"], capture_output=True, text=True, check=True).stdout
        version = re.search(r"LLVM (\d+)", about)[1]
        self.clang, self.opt = tool("clang++", version), tool("opt", version)
        self.codes = {}  # of each program, as it is

    def compile(self, name, directory, instead=None):
        """Returns the program for GenMC, a file in `directory`. `instead`: a directory with files of the library that
        are others."""
        source = os.path.join(HERE, f"{name}.cpp")
        places = [instead, os.path.join(HERE, "replaced"), os.path.join(HERE, "..", "replaced"), self.root]
        raw, good = os.path.join(directory, "raw.ll"), os.path.join(directory, "good.ll")
        includes = [f"-I{place}" for place in places if place]
        subprocess.run([self.clang, *FLAGS, "-S", "-emit-llvm", *includes, source, "-o", raw], check=True)
        subprocess.run([self.opt, "-S", *PASSES, raw, "-o", good], check=True)
        return good

    def run(self, program):
        """What GenMC says."""
        command = [self.genmc, *OPTIONS, "--input-from-bitcode-file", program]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        return answer.stdout + answer.stderr

    def check(self, name):
        before = os.times().children_user
        with tempfile.TemporaryDirectory() as directory:
            answer = self.run(self.compile(name, directory))
        seconds = os.times().children_user - before
        leaks = "Unfreed memory" in answer and name not in KEEP_MEMORY
        if leaks or "No errors were detected." not in answer:
            print(f"{name}: FAILED\n{answer}")
            return False
        executions = re.search(r"complete executions explored: (\d+)", answer)[1]
        print(f"{name}: {executions} executions, {seconds:.1f} s", flush=True)
        return True

    def code(self, name):
        if name not in self.codes:
            with tempfile.TemporaryDirectory() as directory:
                self.codes[name] = instructions(self.compile(name, directory))
        return self.codes[name]

    def notices(self, name, use, weakening):
        """Returns None if the program does not come to that place."""
        file = os.path.join(orders.LIBRARY, use.file)
        with open(os.path.join(self.root, file), encoding="utf-8") as code:
            text = weakened(code.read(), use, weakening)
        with tempfile.TemporaryDirectory() as instead:
            os.makedirs(os.path.join(instead, os.path.dirname(file)))
            with open(os.path.join(instead, file), "w", encoding="utf-8") as code:
                code.write(text)
            program = self.compile(name, instead, instead)
            if instructions(program) == self.code(name):
                return None
            answer = self.run(program)
        if "*** Verification " not in answer:
            sys.exit(f"{name}, {use.key(weakening)}:\n{answer}")
        return "*** Verification unsuccessful." in answer


def instructions(program):
    """Without what tells lines and files."""
    with open(program, encoding="utf-8") as code:
        lines = [line for line in code if not line.startswith(("!", "source_filename", ";"))]
    return re.sub(r",? ?!(?:dbg|srcloc|tbaa|llvm\.loop) ![0-9]+", "", "".join(lines))


def weakened(text, use, weakening):
    begin, end = use.span
    call, rest = text[begin:end], text[end:]
    if weakening == "gone":
        return text[:begin] + "void(0" + rest
    before, after = weakening.split(" ")
    head, order, tail = call.partition(f"memory_order_{before}")
    assert order, use.key(weakening)
    return text[:begin] + head + f"memory_order_{after}" + tail + rest


def files_of(program):
    """The files of the library that it checks, by their names without ending."""
    with open(os.path.join(HERE, f"{program}.cpp"), encoding="utf-8") as file:
        return re.findall(rf'^#include "{orders.LIBRARY}/(\S+)\.\w+"', file.read(), re.M)


def known_orders(root, programs):
    """key: (use, weakening, programs), of those that a model is known to notice. The table may name one program.
    Otherwise all that include the file are tried. No failure orders: GenMC takes an exchange that fails with the order
    of one that succeeds."""
    keys, known = orders.known_keys(orders.uses_in(root)), {}
    named = orders.found_by_genmc(root)
    for key in [*orders.found_by(root), *named]:
        use, weakening = keys[key]
        those = [program for program in programs if os.path.splitext(use.file)[0] in files_of(program)]
        if key in named:
            those = [named[key]]
        if those and not weakening.startswith("failure"):
            known[key] = (use, weakening, those)
    return known


def main(root, *programs):
    genmc = shutil.which(os.environ.get("GENMC", "genmc"))
    if genmc is None:
        sys.exit("GenMC is not installed: MPI-SWS/genmc, to be built from source; if it is not in PATH, GENMC names it")
    root = os.path.abspath(root)
    checker = Checker(root, genmc)
    every = sorted(name[:-4] for name in os.listdir(HERE) if name.endswith(".cpp"))
    programs = programs or every
    good = all([checker.check(program) for program in programs])
    known = {key: order for key, order in known_orders(root, every).items() if set(order[2]) & set(programs)}
    found = {key: {checker.notices(program, use, weakening) for program in those}
             for key, (use, weakening, those) in known.items()}
    # A program that the table names must come to the place.
    named = orders.found_by_genmc(root)
    there = [key for key, answers in found.items() if answers != {None} or key in named]
    missed = [key for key in there if True not in found[key]]
    print("".join(f"no program comes to: {key}\n" for key in found if key not in there), end="")
    print("".join(f"not noticed: {key}\n" for key in missed), end="")
    print(f"{len(there) - len(missed)} of {len(there)} weakened orders are noticed; no program comes to "
          f"{len(found) - len(there)} others")
    return not good or bool(missed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
