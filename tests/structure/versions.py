"""Checks that all files have the same version, and that the changelog has its date or says that it is not released.
Checks that the SBOM has the date of the release.

usage: versions.py SOURCE_ROOT VERSION
"""

import re
import sys

import tree

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


def other_versions(here):
    version = sys.argv[2]
    for path, place, numbers in PLACES:
        found = re.findall(place, here.read(path))
        expected = ".".join(version.split(".")[:numbers])
        if {*found} != {expected}:
            yield f"{path}: {', '.join(sorted({*found})) or 'no version'} instead of {expected}"
    # The names of .install files contain package names, which have the version.
    for path in here.files("packaging/debian", ".install"):
        series = re.search(r"\d[\d.]*(?=\.install$)", path)
        if series and series[0] != ".".join(version.split(".")[:SERIES]):
            yield f"{path}: {series[0]} is not of version {version}"
    released = re.search(r"^## \S+, (.*)$", here.read("CHANGELOG.md"), re.M)[1]
    created = re.search(r"^Created: (\S+)T00:00:00Z$", here.read(SBOM), re.M)[1]
    if released not in (created, "not released"):
        yield f"{SBOM}: created {created} instead of {released}, as CHANGELOG.md says"


if __name__ == "__main__":
    tree.main(other_versions, f"{len(PLACES)} files have one version")
