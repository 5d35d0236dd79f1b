#!/usr/bin/env python3
"""Runs the programs beside this file under GenMC. Then weakens each memory order for which orders.md names a program,
and expects GenMC to notice it.

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


def tool(name, version):
    """Returns the path of a tool of this LLVM. GenMC reads only files of the LLVM with which it was built."""
    found = shutil.which(f"{name}-{version}")
    return found or sys.exit(f"no {name} of LLVM {version}, with which GenMC was built")


class Checker:
    def __init__(self, root, genmc):
        self.root, self.genmc = root, genmc
        about = subprocess.run([genmc, "--version"], capture_output=True, text=True, check=True).stdout
        version = re.search(r"LLVM (\d+)", about)[1]
        self.clang, self.opt = tool("clang++", version), tool("opt", version)

    def compile(self, name, directory, instead=None):
        """Returns the program for GenMC, a file in `directory`. `instead`: a directory with changed files of the library,
        which come first."""
        source = os.path.join(HERE, f"{name}.cpp")
        places = [instead, os.path.join(HERE, "replaced"), os.path.join(HERE, "..", "replaced"), self.root]
        raw, good = os.path.join(directory, "raw.ll"), os.path.join(directory, "good.ll")
        includes = [f"-I{place}" for place in places if place]
        subprocess.run([self.clang, *FLAGS, "-S", "-emit-llvm", *includes, source, "-o", raw], check=True)
        subprocess.run([self.opt, "-S", *PASSES, raw, "-o", good], check=True)
        return good

    def run(self, program):
        """Returns the output of GenMC."""
        command = [self.genmc, *OPTIONS, "--input-from-bitcode-file", program]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        return answer.stdout + answer.stderr

    def check(self, name):
        before = os.times().children_user
        with tempfile.TemporaryDirectory() as directory:
            answer = self.run(self.compile(name, directory))
        seconds = os.times().children_user - before
        # GenMC only warns about memory that stays.
        if "Unfreed memory" in answer or "No errors were detected." not in answer:
            print(f"{name}: FAILED\n{answer}")
            return False
        executions = re.search(r"complete executions explored: (\d+)", answer)[1]
        print(f"{name}: {executions} executions, {seconds:.1f} s", flush=True)
        return True

    def notices(self, name, use, weakening):
        file = os.path.join(orders.LIBRARY, use.file)
        with open(os.path.join(self.root, file), encoding="utf-8") as code:
            text = weakened(code.read(), use, weakening)
        with tempfile.TemporaryDirectory() as instead:
            os.makedirs(os.path.join(instead, os.path.dirname(file)))
            with open(os.path.join(instead, file), "w", encoding="utf-8") as code:
                code.write(text)
            answer = self.run(self.compile(name, instead, instead))
        if "*** Verification " not in answer:
            sys.exit(f"{name}, {use.key(weakening)}:\n{answer}")
        return "*** Verification unsuccessful." in answer


def weakened(text, use, weakening):
    begin, end = use.span
    call, rest = text[begin:end], text[end:]
    before, after = weakening.split(" ")
    head, order, tail = call.partition(f"memory_order_{before}")
    assert order, use.key(weakening)
    return text[:begin] + head + f"memory_order_{after}" + tail + rest


def main(root, *programs):
    genmc = shutil.which(os.environ.get("GENMC", "genmc"))
    if genmc is None:
        sys.exit("GenMC is not installed: MPI-SWS/genmc, to be built from source; if it is not in PATH, GENMC names it")
    root = os.path.abspath(root)
    checker = Checker(root, genmc)
    programs = programs or sorted(name[:-4] for name in os.listdir(HERE) if name.endswith(".cpp"))
    good = all([checker.check(program) for program in programs])
    keys = orders.known_keys(orders.uses_in(root))
    known = {key: program for key, program in orders.found_by_genmc(root).items() if program in programs}
    missed = [key for key, program in known.items() if not checker.notices(program, *keys[key])]
    print("".join(f"not noticed: {key}\n" for key in missed), end="")
    print(f"{len(known) - len(missed)} of {len(known)} weakened orders are noticed")
    return not good or bool(missed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
