"""Checks that README.md and tests/timer/promises_test.cpp state the same promises, and that the tests they name exist.

usage: promises.py SOURCE_ROOT
"""

import re

import tree

TESTS = "tests/timer/promises_test.cpp"
ROW = re.compile(r"^\| (\d+) \| (.*?) \|", re.M)
STATED = re.compile(r"^// Promise (\d+): (.*(?:\n// (?!Also ).*)*)", re.M)
POINTER = re.compile(r"^// Also (\S+): (.*)", re.M)


def differences(here):
    tests = here.read(TESTS)
    promised = dict(ROW.findall(here.read("README.md")))
    stated = {number: sentence.replace("\n// ", " ") for number, sentence in STATED.findall(tests)}
    if not promised:
        yield "README.md promises nothing"
    for number in sorted(promised.keys() | stated.keys(), key=int):
        if promised.get(number) != stated.get(number):
            yield (f"README.md promises {number}: {promised.get(number)}\n{TESTS} states {number}: {stated.get(number)}")
        if f"TEST(Promise{number}, " not in tests:
            yield f"{TESTS}: no suite Promise{number}"
    for path, suites in POINTER.findall(tests):
        there = here.read(path) if here.has(path) else ""
        for suite, test in re.findall(r"(\w+)(?:\.(\w+))?", suites):
            if not re.search(rf"^(?:TYPED_)?TEST(?:_[FP])?\({suite}, {test}\b", there, re.M):
                yield f"{TESTS}: no {suite}.{test or '*'} in {path}"


if __name__ == "__main__":
    tree.main(differences, "the tests state each promise")
