"""Checks that all files have the same version, and that the changelog has its date or says that it is not released.
Checks that the SBOM has the date of the release.

usage: versions.py SOURCE_ROOT VERSION
"""

import os
import re
import sys

# Each file, an expression that finds the version in it, and how many numbers of the version it has.
ALL, SERIES = 3, 2
UNRELEASED = r"\A# Changelog\n\n(?:## Unreleased\n(?:(?!## ).*\n)*)?"
PLACES = [
    ("hashed_wheel_timer/version.h", r'HWT_VERSION_STRING "(.*)"', ALL),
    ("CHANGELOG.md", UNRELEASED + r"## (\S+), (?:\d{4}-\d\d-\d\d|not released)\n", ALL),
    ("MODULE.bazel", r'name = "hashed_wheel_timer",\n    version = "(.*)"', ALL),
    ("packaging/vcpkg/hashed-wheel-timer/vcpkg.json", r'"version": "(.*)"', ALL),
    ("packaging/debian/changelog", r"\A\S+ \((.*)-\d+\)", ALL),
    ("packaging/debian/control", r"libhashed-wheel-timer(?:-calendar)?(\d[\d.]*)", SERIES),
    ("README.md", r"find_package\(hashed_wheel_timer ([\d.]+)", SERIES),
    ("tests/consumer/program/CMakeLists.txt", r"find_package\(hashed_wheel_timer ([\d.]+)", SERIES),
    ("tests/consumer/c/CMakeLists.txt", r"find_package\(hashed_wheel_timer ([\d.]+)", SERIES),
]
SBOM = "packaging/sbom/hashed_wheel_timer.spdx.in"


def main(root, version):
    wrong = []
    for path, place, numbers in PLACES:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            found = re.findall(place, file.read())
        expected = ".".join(version.split(".")[:numbers])
        if not found or {*found} != {expected}:
            wrong.append(f"{path}: {', '.join(sorted({*found})) or 'no version'} instead of {expected}")
    # The names of .install files contain package names, which have the version.
    for name in os.listdir(os.path.join(root, "packaging/debian")):
        series = re.search(r"\d[\d.]*(?=\.install$)", name)
        if series and series[0] != ".".join(version.split(".")[:SERIES]):
            wrong.append(f"packaging/debian/{name}: {series[0]} is not of version {version}")
    with open(os.path.join(root, "CHANGELOG.md"), encoding="utf-8") as file:
        released = re.search(r"^## \S+, (.*)$", file.read(), re.M)[1]
    with open(os.path.join(root, SBOM), encoding="utf-8") as file:
        created = re.search(r"^Created: (\S+)T00:00:00Z$", file.read(), re.M)[1]
    if released not in (created, "not released"):
        wrong.append(f"{SBOM}: created {created} instead of {released}, as CHANGELOG.md says")
    print("\n".join(wrong) or f"{len(PLACES)} files say {version}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
