"""Checks that README.md and tests/timer/promises_test.cpp state the same promises, and that the tests they name exist.

usage: promises.py SOURCE_ROOT
"""

import os
import re
import sys

TESTS = "tests/timer/promises_test.cpp"
ROW = re.compile(r"^\| (\d+) \| (.*?) \|", re.M)
STATED = re.compile(r"^// Promise (\d+): (.*(?:\n// (?!Also ).*)*)", re.M)
POINTER = re.compile(r"^// Also (\S+): (.*)", re.M)


def main(root):
    def read(path):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            return file.read()

    tests = read(TESTS)
    promised = dict(ROW.findall(read("README.md")))
    stated = {number: sentence.replace("\n// ", " ") for number, sentence in STATED.findall(tests)}
    wrong = [f"README.md promises {number}: {promised.get(number)}\n{TESTS} states {number}: {stated.get(number)}"
             for number in sorted(promised.keys() | stated.keys(), key=int)
             if promised.get(number) != stated.get(number)]
    wrong += [f"{TESTS}: no suite Promise{number}" for number in promised if f"TEST(Promise{number}, " not in tests]
    for path, suites in POINTER.findall(tests):
        there = read(path) if os.path.exists(os.path.join(root, path)) else ""
        for suite, test in re.findall(r"(\w+)(?:\.(\w+))?", suites):
            if not re.search(rf"^(?:TYPED_)?TEST(?:_[FP])?\({suite}, {test}\b", there, re.M):
                wrong.append(f"{TESTS}: no {suite}.{test or '*'} in {path}")
    print("\n".join(wrong) or f"{len(promised)} promises")
    return bool(wrong) or not promised


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
