"""Tests of parts.ini: the paths of each part, with a copy of this tree, and the steps of the check."""

import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
import verification  # noqa: E402


class Lexer(unittest.TestCase):
    def test_comments_are_gone_and_strings_stay(self):
        for text, code in [
            ("int a;  // b\n\n  int c; /* d\n e */ int f;\n", "int a;\n  int c;   int f;"),
            ('auto a = "// b"; auto c = R"d(/* " */)d";  // e', 'auto a = "// b"; auto c = R"d(/* " */)d";'),
            ("char a = '\"', b = '/';  // \"", "char a = '\"', b = '/';"),
            ("int a;  // NOLINT(b)\n", "int a;  // NOLINT(b)"),
        ]:
            self.assertEqual(verification.code_of(".cpp", text), code)


READERS = {"format", "words", "structure", "docs", "browser"}  # They read all texts.
# They run the inputs of tests/fuzz.
REPLAY = {"warnings", "test", "sanitizers", "coverage", "machines", "mutation", "mutation-fresh"}
RUN_UNIT_TESTS = REPLAY | {"compilers"}

# Files that no part uses but the readers.
ONLY_READ = {
    "*.md *.svg": "pages and pictures",
    "docs/site docs/monitoring .run/docs.sh": "the site",
    ".clang-format .editorconfig .mdformat.toml .run/format.sh": "formats",
    "tests/words .run/words.sh": "the words",
    "tests/verification .run/usage.txt": "the suite `structure` tests them",
    ".ci .github .gitignore": "settings of servers and of git",
    "perf/guard perf/peers perf/results": "figures, which no check compares",
}


class Tree(unittest.TestCase):
    """Tests of parts.ini, with a copy of this tree."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.root = os.path.join(folder.name, "tree")
        shutil.copytree(ROOT, cls.root, ignore=lambda folder, names: {
            name for name in names if folder == ROOT and (name == ".git" or name.startswith("build"))})
        subprocess.run(["git", "init", "--quiet"], cwd=cls.root, check=True)
        cls.parts = verification.read_parts(cls.root)
        cls.digests = cls.now()

    @classmethod
    def now(cls):
        return {name: verification.digest_of(cls.root, cls.parts[name]) for name in cls.parts.sections()}

    @classmethod
    def read(cls, path):
        with open(os.path.join(cls.root, path), encoding="utf-8") as file:
            return file.read()

    def write(self, path, text):
        with open(os.path.join(self.root, path), "w", encoding="utf-8") as file:
            file.write(text)

    def stale_after(self, path, before, after):
        """Returns the parts that a change of the file makes stale."""
        text = self.read(path)
        self.assertIn(before, text)
        self.write(path, text.replace(before, after, 1))
        self.addCleanup(self.write, path, text)
        now = self.now()
        self.doCleanups()
        return {name for name in now if now[name] != self.digests[name]}

    def test_a_change_makes_only_those_parts_stale_that_use_the_text(self):
        for path, before, stale in [
            ("hashed_wheel_timer/timer.h", "///", READERS),  # in a comment
            ("hashed_wheel_timer/internal/core/core.cpp", "#include", {*self.parts.sections()}),
            ("docs/guide.md", "The ", READERS),
            ("README.md", "The ", READERS),
            ("CHANGELOG.md", "The ", READERS),
            ("docs/guide.md", "}\n```\n", READERS | RUN_UNIT_TESTS | {"bare"}),  # in a block of code
            ("tests/fuzz/wheels.cpp", "#include", READERS | REPLAY | {"fuzz", "simulation"}),
            ("tests/timer/races_test.cpp", "#include", READERS | RUN_UNIT_TESTS),
            (verification.PAGE, "# ", set()),
        ]:
            with self.subTest(path=path, before=before):
                planted = "/// Planted.\n///" if before == "///" else f"int planted;\n{before}"
                self.assertEqual(self.stale_after(path, before, planted), stale)

    @unittest.skipUnless(shutil.which("g++"), "other compilers do not take -fpreprocessed")
    def test_the_code_of_every_source_is_what_the_compiler_sees(self):
        paths = verification.files_of(self.root, ["*.h", "*.cpp"])
        self.assertGreater(len(paths), 500)
        texts = [self.read(path).replace("NOLINT", "") for path in paths]
        codes = [verification.code_of(".cpp", text) for text in texts]
        seen = self.preprocessed(texts)
        self.assertEqual(self.preprocessed(codes), seen)
        # The compiler drops this line, and blanks in the parameters of macros.
        self.assertEqual(self.lines(re.sub("#pragma once", "", self.joined(codes))), seen)

    @staticmethod
    def joined(texts):
        return "".join(f"file_{number};\n{text}\n" for number, text in enumerate(texts))

    @staticmethod
    def lines(text):
        return [re.sub(r"\s", "", line) for line in text.splitlines() if line.strip()]

    def preprocessed(self, texts):
        command = ["g++", "-fpreprocessed", "-dD", "-E", "-P", "-w", "-std=c++20", "-x", "c++", "-"]
        return self.lines(subprocess.run(command, input=self.joined(texts), stdout=subprocess.PIPE, encoding="utf-8",
                                         check=True).stdout)

    def test_every_path_names_files(self):
        for name in self.parts.sections():
            for path in self.paths(name):
                self.assertTrue(verification.files_of(self.root, [path]), f"{name}: no such file: {path}")

    def paths(self, name):
        return (self.parts[name].get("code", "") + " " + self.parts[name].get("text", "")).split()

    def test_every_file_is_in_a_part_that_uses_it(self):
        used = {path for name in self.parts.sections() for path in self.paths(name)} - {"."}
        used = {*verification.files_of(self.root, used)}
        only_read = {*verification.files_of(self.root, " ".join(ONLY_READ).split())}
        every = verification.files_of(self.root, ["."])
        self.assertGreater(len(every), 600)
        self.assertEqual([path for path in every if path not in used | only_read], [])

    def test_a_part_has_every_file_that_its_files_include(self):
        for name in self.parts.sections():
            files = {*verification.files_of(self.root, self.paths(name))}
            missing = {f"{path}: {other}" for path in files for other in self.included(path) if other not in files}
            self.assertEqual(sorted(missing), [], name)

    @classmethod
    @functools.cache
    def included(cls, path):
        """Returns the files of the tree that the file includes."""
        if not path.endswith((".h", ".cpp")):
            return set()
        names = re.findall(r'^#include "(.*)"', cls.read(path), re.M)
        places = [os.path.normpath(os.path.join(folder, name))
                  for name in names for folder in (os.path.dirname(path), "", "docs/examples")]
        return {place for place in places if os.path.isfile(os.path.join(cls.root, place))}


class Table(unittest.TestCase):
    def test_every_part_has_a_command_a_cell_and_a_duration(self):
        parts = verification.read_parts(ROOT)
        for name in parts.sections():
            with self.subTest(name):
                self.assertLessEqual({*parts[name]} - {*parts.defaults()},
                                     {"command", "covers", "takes", "result", "needs", "of", "code", "text"})
                self.assertRegex(parts[name]["command"], r"^\./run (check |test |demo$)")
                self.assertRegex(parts[name]["takes"], r"^\d+ min$")
                self.assertNotIn("|", parts[name]["covers"])

    def test_every_step_of_the_check_is_in_a_part(self):
        texts = {}
        for name in os.listdir(os.path.join(ROOT, ".run")):
            with open(os.path.join(ROOT, ".run", name), encoding="utf-8") as file:
                texts[name] = file.read()
        steps = {*re.findall(r"^(?:check|alone)_(\w+)\(\)", "".join(texts.values()), re.M)} - {"all", "stale"}
        self.assertGreater(len(steps), 20)
        text = texts["check.sh"]
        of_others = dict(re.findall(r"^    (\w+)\) echo (.*) ;;", text[text.index("steps_of() {"):], re.M))
        parts = verification.read_parts(ROOT)
        run = {word for name in parts.sections() for word in parts[name]["command"].split()}
        run |= {step for name in run & {*of_others} for step in of_others[name].split()}
        self.assertEqual(steps - run, set())


if __name__ == "__main__":
    unittest.main()
