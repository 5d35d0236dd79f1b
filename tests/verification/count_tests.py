"""Prints how many tests passed and failed, by Meson's logs. Each case of a GoogleTest program counts.

usage: count_tests.py NAME LOG...

Does not read GoogleTest's XML, because a program that crashes leaves the XML of the previous run. A crash under wine
ends with status 0. So a GoogleTest program passes only if it printed PASSED. If there is a name, which the line then
begins with, another program of the suite `unit` passes only if it printed something. Leaves out logs that do not exist.
Fails if a test failed, or if there is a name and no test.
"""

import json
import os
import re
import sys


def count(test, name):
    """Returns how many cases of the test passed and failed."""
    output = test.get("stdout", "")
    passed = len(re.findall(r"^\[       OK \] ", output, re.M))
    failed = len(re.findall(r"^\[  FAILED  \] .* \(\d+ ms\)$", output, re.M))
    has_cases = "[==========] Running " in output
    if test["result"] == "SKIP":
        return passed, failed
    good = test["result"] in ("OK", "EXPECTEDFAIL")
    must_print = name and ":unit" in test["name"]
    ended = "[  PASSED  ] " in output if has_cases else not must_print or output + test.get("stderr", "")
    if good and ended:
        return passed if has_cases else 1, failed
    if good:
        print(f"{test['name']}: FAILED: it ended too early")
    # It crashed, hung, or a sanitizer found something at its end.
    return passed, max(failed, 1)


def main(name, *logs):
    counts = [count(json.loads(line), name) for log in logs if os.path.exists(log)
              for line in open(log, encoding="utf-8")]
    passed, failed = (sum(column) for column in zip(*counts)) if counts else (0, 0)
    if counts or name:  # `meson test --list` leaves no log
        print(f"{name}: " * bool(name) + f"{passed} passed, {failed} failed")
    return failed > 0 or bool(name) and not counts


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
