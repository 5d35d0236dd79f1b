#!/usr/bin/env python3
"""Checks the SBOM of each kind of build: it is valid SPDX 2.3, and its dependencies are those of the .pc files.

usage: sbom.py SOURCE WORK; SOURCE is a copy of the tree. Needs spdx-tools of PyPI, meson, cmake, ninja, pkg-config and
the packages of the dependencies. Nothing is compiled, because the files are made when a build is configured.
"""

import glob
import os
import re
import subprocess
import sys

from spdx_tools.spdx.model import RelationshipType
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

OWN = "hashed_wheel_timer"
# The compiler brings these libraries.
RUNTIME = {"pthread", "stdc++", "c++"}
# The packages of libraries whose names differ from the package.
PACKAGE_OF = {"date-tz": "date"}


def configure(source, work, builder, kind, calendar):
    """Returns the folder of a new build."""
    build = os.path.join(work, f"{builder}-{kind}-{'with' if calendar else 'without'}-calendar")
    if builder == "meson":
        options = [f"-D{part}=disabled" for part in ("tests", "examples", "benchmarks", "prometheus")]
        options += [f"-Ddefault_library={kind}", f"-Dcalendar={'enabled' if calendar else 'disabled'}"]
        command = ["meson", "setup", *options, build, source]
    else:
        command = ["cmake", "-G", "Ninja", f"-DHASHED_WHEEL_TIMER_CALENDAR={calendar}",
                   f"-DHASHED_WHEEL_TIMER_SHARED={kind == 'shared'}", "-S", source, "-B", build]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return build


def linked_packages(build):
    """Returns the packages of the libraries that the .pc files name, without this project's."""
    paths = glob.glob(os.path.join(build, "**", f"{OWN}*.pc"), recursive=True)
    path = os.pathsep.join({os.path.dirname(path) for path in paths})
    names = [os.path.basename(path)[: -len(".pc")] for path in paths]
    found = subprocess.run(["pkg-config", "--static", "--libs-only-l", *names], check=True, stdout=subprocess.PIPE,
                           encoding="utf-8", env={**os.environ, "PKG_CONFIG_PATH": path}).stdout
    libraries = {name for name in re.findall(r"-l(\S+)", found) if not name.startswith(OWN)} - RUNTIME
    return {PACKAGE_OF.get(name, name) for name in libraries}


def faults(source, build, builder, kind, calendar):
    """Yields the faults of the SBOM of the build."""
    path = os.path.join(build, "packaging", f"{OWN}.spdx")
    document = parse_file(path)
    for message in validate_full_spdx_document(document, "SPDX-2.3"):
        yield message.validation_message
    packages = {package.spdx_id: package for package in document.packages}
    main = next(package for package in document.packages if package.name == OWN)
    with open(os.path.join(source, OWN, "version.h"), encoding="utf-8") as header:
        version = re.search(r'HWT_VERSION_STRING "(.*)"', header.read())[1]
    if main.version != version:
        yield f"version: {main.version} (expected: {version})"

    def related(kind_of_relationship):
        return {packages[entry.related_spdx_element_id].name for entry in document.relationships
                if entry.spdx_element_id == main.spdx_id and entry.relationship_type == kind_of_relationship}

    needed, contained = related(RelationshipType.DEPENDS_ON), related(RelationshipType.CONTAINS)
    linked = linked_packages(build)
    # With CMake, the .pc files of shared libraries do not name the libraries that they load.
    if needed != linked and (builder, kind) != ("cmake", "shared"):
        yield f"dependencies: {sorted(needed)} (expected: {sorted(linked)}, as the .pc files say)"
    if "concurrentqueue" not in contained:
        yield f"contained packages: {sorted(contained)} (expected: concurrentqueue among them)"
    if {OWN, *needed, *contained} != {package.name for package in document.packages}:
        yield "a package has no relationship"
    if not calendar and len(packages) != 2:
        yield f"packages: {len(packages)} (expected: 2 without the calendar)"


def main(source, work):
    bad = False
    for builder in ("meson", "cmake"):
        for kind in ("static", "shared"):
            for calendar in (True, False):
                build = configure(source, work, builder, kind, calendar)
                found = list(faults(source, build, builder, kind, calendar))
                bad = bad or bool(found)
                print(f"{os.path.basename(build)}: {'; '.join(found) or 'valid'}", flush=True)
    return bad


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
