"""Checks that asio.h and boost_asio.h refuse a library that is too old with one error that names its version.

usage: old_asio.py SOURCE_ROOT COMPILER...

This script writes version headers that the compiler finds before the system's, so it needs neither library.
"""

import os
import re
import sys
import tempfile

import tree

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


def errors(root, library, version):
    header, version_header, text = library
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, version_header)
        os.makedirs(os.path.dirname(path))
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.format(*version))
        options = [*OPTIONS, f"-I{folder}", f"-I{root}"]
        return ERROR.findall(tree.compiled(sys.argv[2:], options, f'#include "hashed_wheel_timer/{header}"\n')[1])


def wrongly_told(here):
    for library, version, message in CASES:
        found = errors(here.root, library, version)
        if message is None:
            right = not any("expected: " in error and " or later" in error for error in found)
        else:
            right = len(found) == 1 and message in found[0]
        if not right:
            yield f"{library[0]}: {version}: {len(found)} errors: {found[:3]} (expected: {message})"


if __name__ == "__main__":
    tree.main(wrongly_told, f"{len(CASES)} versions")
