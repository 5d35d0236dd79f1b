"""Checks that asio.h and boost_asio.h refuse a library that is too old with one error that names its version.

usage: old_asio.py SOURCE_ROOT COMPILER...

This script writes version headers that the compiler finds before the system's, so it needs neither library.
"""

import os
import re
import subprocess
import sys
import tempfile

OPTIONS = ["-std=c++20", "-fsyntax-only", "-fno-diagnostics-color"]
BOOST = ("boost_asio.h", "boost/version.hpp", '#define BOOST_VERSION {}\n#define BOOST_LIB_VERSION "{}"\n')
ASIO = ("asio.h", "asio/version.hpp", "#define ASIO_VERSION {}\n")
ERROR = re.compile(r"\berror: (.*)")

# The last two are the oldest supported versions.
CASES = [
    (BOOST, (107400, "1_74"), "Boost: 1_74 (expected: 1_81 or later; Debian 12: libboost1.81-dev)"),
    (BOOST, (108000, "1_80"), "Boost: 1_80 (expected: 1_81 or later; Debian 12: libboost1.81-dev)"),
    (ASIO, (101801,), "ASIO_VERSION: 101801 (expected: 102201 or later, which is 1.22.1)"),
    (ASIO, (102200,), "ASIO_VERSION: 102200 (expected: 102201 or later, which is 1.22.1)"),
    (BOOST, (108100, "1_81"), None),
    (ASIO, (102201,), None),
]


def errors(root, compiler, library, version):
    header, version_header, text = library
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, version_header)
        os.makedirs(os.path.dirname(path))
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.format(*version))
        done = subprocess.run([*compiler, *OPTIONS, f"-I{folder}", f"-I{root}", "-x", "c++", "-"], check=False,
                              input=f'#include "hashed_wheel_timer/{header}"\n', stderr=subprocess.PIPE,
                              encoding="utf-8")
        return ERROR.findall(done.stderr)


def main(root, compiler):
    failures = []
    for library, version, message in CASES:
        found = errors(root, compiler, library, version)
        if message is None:
            right = not any("expected: " in error and " or later" in error for error in found)
        else:
            right = len(found) == 1 and message in found[0]
        if not right:
            failures.append(f"{library[0]}: {version}: {len(found)} errors: {found[:3]} (expected: {message})")
    print("\n".join(failures) or f"{len(CASES)} versions")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
