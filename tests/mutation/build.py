"""Builds the library with all faults, and its tests, once: in build/mutation/tree and build/mutation/objects."""

import json
import os
import re
import subprocess
import sys

import places

LIBRARY = "hashed_wheel_timer"
UNIT = f"{LIBRARY}:unit"  # the suite
HERE = os.path.dirname(os.path.abspath(__file__))
ERROR = re.compile(r"^(?:\.\./)*(\S*?\.(?:h|cpp)):(\d+):(\d+): (?:fatal )?error: (.*)", re.M)
COMPILED = re.compile(r"::hwt_mutation::on\((\d+)\)")
SWITCH = re.compile(r"HWT_MUTANT\((\d+)\)")
ROUNDS = 12  # of dropping faults that do not compile; one error may hide another


def write_if_changed(path, text):
    if os.path.islink(path) or not os.path.exists(path) or open(path, encoding="utf-8").read() != text:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


class Build:
    def __init__(self, root):
        self.root = root
        self.folder = os.path.join(root, "build", "mutation")
        self.tree = os.path.join(self.folder, "tree")
        self.objects = os.path.join(self.folder, "objects")
        self.refused_file = os.path.join(self.folder, "refused.json")
        self.refused = set(json.load(open(self.refused_file))) if os.path.exists(self.refused_file) else set()
        sources = {path: open(os.path.join(root, path), "rb").read() for path in self.sources()}
        enumerators = self.enumerators(sources.values())
        self.files = [places.File(path, code, enumerators) for path, code in sources.items()]
        self.preprocessed = {}  # path -> numbers
        self.places = [place for file in self.files for place in file.places.values()]

    def sources(self):
        found = []
        for folder, _, names in os.walk(os.path.join(self.root, LIBRARY)):
            found += [os.path.relpath(os.path.join(folder, name), self.root) for name in names
                      if name.endswith((".h", ".cpp"))]
        return sorted(found)

    @staticmethod
    def enumerators(sources):
        """Returns the enumerators of all files, with None for enums of the same name that differ."""
        following = {}
        for code in sources:
            for name, other in places.enumerators_in(code).items():
                following[name] = other if following.get(name, other) == other else None
        return following

    def write_tree(self):
        os.makedirs(self.tree, exist_ok=True)
        for name in os.listdir(self.root):
            target = os.path.join(self.tree, name)
            if name != LIBRARY and not name.startswith((".", "build")) and not os.path.lexists(target):
                os.symlink(os.path.join(self.root, name), target)
        for name in os.listdir(os.path.join(self.root, LIBRARY)):
            if not name.endswith((".h", ".cpp")) and name not in ("detail", "internal"):
                text = open(os.path.join(self.root, LIBRARY, name), encoding="utf-8").read()
                write_if_changed(os.path.join(self.tree, LIBRARY, name), text)
        for number, place in enumerate(self.places, 1):
            place.number = 0 if place.key in self.refused else number
        for file in self.files:
            write_if_changed(os.path.join(self.tree, file.path), file.rewritten())

    def configure(self):
        if os.path.exists(os.path.join(self.objects, "build.ninja")):
            return
        switch = os.path.join(self.folder, "switch.o")
        self.run("g++", "-std=c++20", "-fPIC", "-c", os.path.join(HERE, "switch.cpp"), "-o", switch)
        self.run("meson", "setup", self.objects, self.tree, "-Ddebug=false", "-Doptimization=0", "-Dwarning_level=0",
                 "-Ddefault_library=static", "-Dtests=enabled", "-Dexamples=disabled", "-Dbenchmarks=disabled",
                 f"-Dcpp_args=-w -include {HERE}/switch.h", f"-Dcpp_link_args={switch}")

    @staticmethod
    def run(*command):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def programs(self):
        """Returns {name: command} of the unit tests. Those with arguments do not use GoogleTest."""
        tests = json.loads(self.run("meson", "introspect", "--tests", self.objects))
        return {test["name"]: test["cmd"] for test in tests if UNIT in test["suite"]}

    def is_compiled(self, place):
        """Whether the place survives the preprocessor on this system."""
        if place.path not in self.preprocessed:
            command = ["g++", "-std=c++20", "-E", "-include", os.path.join(HERE, "switch.h"), "-I", self.tree]
            command += ["-x", "c++", os.path.join(self.tree, place.path)]
            done = subprocess.run(command, capture_output=True, text=True)
            self.preprocessed[place.path] = {int(number) for number in COMPILED.findall(done.stdout)}
        return place.number in self.preprocessed[place.path]

    def make(self):
        """Builds, and drops faults that do not compile, until everything compiles."""
        for _ in range(ROUNDS):
            self.write_tree()
            self.configure()
            targets = sorted({os.path.relpath(command[0], self.objects) for command in self.programs().values()})
            # The library first: it has most of the faults that do not compile, and the tests take longer.
            for some in ([f"{LIBRARY}/libhashed_wheel_timer_internal.a"], targets):
                command = ["ninja", "-C", self.objects, "-j2", "-k0", *some]
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode:
                    break
            if done.returncode == 0:
                return
            self.refuse(done.stdout)
        sys.exit(f"faults that do not compile are left after {ROUNDS} rounds")

    def refuse(self, log):
        refused = set()
        for path, line, column, _ in ERROR.findall(log):
            at = path.find(LIBRARY + "/")
            number = self.switch_at(path[at:], int(line), int(column)) if at >= 0 else 0
            refused |= {self.places[number - 1].key} if number else set()
        if not refused - self.refused:
            sys.exit(log)
        self.refused |= refused
        print(f"{len(refused)} faults do not compile: left out", flush=True)
        with open(self.refused_file, "w") as file:
            json.dump(sorted(self.refused), file, indent=0)

    def switch_at(self, path, line, column):
        """Returns the number of the nearest switch before this place, or of the first one in its line; 0: none."""
        if not os.path.exists(os.path.join(self.tree, path)):
            return 0
        lines = open(os.path.join(self.tree, path), encoding="utf-8").read().splitlines()
        here = list(SWITCH.finditer(lines[line - 1]))
        before = [match for match in here if match.start() < column] or here[:1]
        for earlier in range(line - 2, max(line - 8, -1), -1):
            before = before or list(SWITCH.finditer(lines[earlier]))
        return int(before[-1][1]) if before else 0
