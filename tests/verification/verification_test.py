"""Tests of verification.py, with made-up parts in a temporary tree."""

import contextlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(HERE, "verification.py")
sys.path.insert(0, HERE)
import count_tests  # noqa: E402
import verification  # noqa: E402

# Each part appends its name to a file outside the tree.
PARTS = '''
[paths]
sources = a.cpp b.cpp

[good]
command = sh -c 'echo good >>"$RUNS"; echo first; echo "2 passed, 0 failed"; echo last'
covers = what passes
takes = 1 s
result = passed, \\d+ failed
code = {sources} docs

[bad]
command = sh -c 'echo bad >>"$RUNS"; echo a | tr a "|"; exit 3'
covers = what fails
takes = 1 s
code = b.cpp

[long]
command = sh -c 'echo long >>"$RUNS"; test -z "$WAITS" && exit; exec 3>"$WAITS"; (echo started; sleep 60; echo late) >&3 & wait'
covers = what is interrupted
takes = 10 min
text = docs a.cpp

[absent]
command = no_such_program_anywhere
covers = what needs a program
takes = 1 s
needs = no_such_program_anywhere

[seeded]
command = sh -c 'echo seeded >>"$RUNS"; echo "seed $0"' {seed}
covers = what takes the commit, with a number of the version
takes = 1 s
of = commit
code = b.cpp
'''
PROJECT = """project('small', 'cpp',
  version: '{}',
  meson_version: '>=1.0.0',
)
"""


class TemporaryTree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = os.path.join(folder.name, "tree")
        self.runs = os.path.join(folder.name, "runs")
        self.fifo = os.path.join(folder.name, "fifo")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        self.environment |= {"RUNS": self.runs, "WAITS": "", "GIT_CONFIG_GLOBAL": os.devnull, "HOME": folder.name}
        self.write(verification.PARTS, PARTS)
        self.write(".gitignore", "/build/\n")
        self.write("meson.build", PROJECT.format("1.2.3"))
        self.write("docs/a.md", "text\n")
        self.write("a.cpp", "int a;  // text\n")
        self.write("b.cpp", "int b;\n")
        self.git("init", "--quiet")
        self.commit()

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def git(self, *arguments):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments], cwd=self.root, check=True,
                       env=self.environment, stdout=subprocess.DEVNULL)

    def commit(self):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=change")

    def start(self, *names, **more):
        return subprocess.Popen([sys.executable, "-B", SCRIPT, self.root, *names], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, encoding="utf-8", env={**self.environment, **more})

    def run_all(self, *names):
        """Returns the exit code, the parts that ran, and the two outputs."""
        if os.path.exists(self.runs):
            os.remove(self.runs)
        process = self.start(*names)
        output, errors = process.communicate(timeout=100)
        return process.returncode, self.ran(), output, errors

    def ran(self):
        if not os.path.exists(self.runs):
            return []
        with open(self.runs, encoding="utf-8") as file:
            return file.read().split()

    def row(self, name):
        with open(os.path.join(self.root, verification.PAGE), encoding="utf-8") as file:
            return next(line for line in file if line.startswith(f"| {name} "))


class Verification(TemporaryTree):
    def test_every_part_runs_until_it_has_passed_and_the_page_has_its_result(self):
        status, ran, output, _ = self.run_all()
        self.assertEqual(status, 1)
        self.assertEqual(ran, ["good", "bad", "long", "seeded"])
        self.assertRegex(self.row("good"), r"\| \d{4}-\d\d-\d\d \d\d:\d\d \| \d+ s \| \w+ \w+, \d+ processors "
                         r"\| [0-9a-f]{10} \| [0-9a-f]{12} \| passed: `2 passed, 0 failed` \|$")
        self.assertRegex(self.row("bad"), r" \| failed: `/` \|$")
        self.assertRegex(self.row("absent"), r"\| not run: no_such_program_anywhere is not installed \|$")
        self.assertRegex(self.row("seeded"), r"`seed \d+` \|$")
        self.assertEqual(output.split("\n")[:2], ["good: passed", "bad: failed"])
        # The next runs repeat only parts that have not passed, or are named. A part that cannot run is no failure.
        self.assertEqual(self.run_all()[1], ["bad"])
        self.assertEqual(self.run_all("good")[:2], (0, ["good"]))
        self.assertIn("failed", self.row("bad"))
        self.assertEqual(self.run_all("absent")[:2], (0, []))

    def test_wrong_names_are_told_in_one_line_and_nothing_runs(self):
        status, ran, output, errors = self.run_all("good", "wrong", "false")
        self.assertEqual((status, ran, output), (2, [], ""))
        self.assertRegex(errors, r"^run: no such part of all: wrong false \(there are: good bad .*\)\n$")
        self.assertFalse(os.path.exists(os.path.join(self.root, verification.PAGE)))

    def test_a_part_runs_again_when_its_command_or_a_file_has_changed_that_it_depends_on(self):
        self.run_all()
        for path, text, ran in [
            ("c.cpp", "int c;\n", ["bad"]),
            ("a.cpp", "int other;  // text\n", ["good", "bad", "long"]),
            ("a.cpp", "int other;\n\n/* other\ntext */\n", ["bad", "long"]),
            ("docs/a.md", "other text\n", ["bad", "long"]),
            ("docs/a.md", "other text\n\n```\ncode\n```\n", ["good", "bad", "long"]),
            ("docs/new.md", "text\n", ["good", "bad", "long"]),
        ]:
            with self.subTest(path=path, text=text):
                self.write(path, text)
                self.assertEqual(self.run_all()[1], ran)
        os.remove(os.path.join(self.root, "docs/new.md"))
        self.assertEqual(self.run_all()[1], ["good", "bad", "long"])
        self.write(verification.PARTS, PARTS.replace("echo first", "echo early"))  # in a command
        self.assertEqual(self.run_all()[1], ["good", "bad"])

    def test_the_page_keeps_the_results_for_a_clone_and_for_a_change_that_is_taken_back(self):
        self.run_all()
        self.commit()  # of the page
        shutil.rmtree(os.path.join(self.root, "build"))
        self.assertEqual(self.run_all()[1], ["bad"])
        self.write("a.cpp", "int other;\n")
        self.run_all("bad")
        self.assertRegex(self.row("good"), r" \| stale; passed: `2 passed, 0 failed` \|$")
        self.write("a.cpp", "int a;\n")
        self.run_all("bad")
        self.assertRegex(self.row("good"), r" \| passed: `2 passed, 0 failed` \|$")

    def test_the_list_tells_the_state_of_each_part_and_runs_none(self):
        self.run_all()
        self.write("a.cpp", "int other;  // text\n")
        status, ran, output, _ = self.run_all("--list")
        self.assertEqual((status, ran), (0, []))
        self.assertEqual(output.split("\n")[:-1],
                         ["good: stale", "bad: failed", "long: stale", "absent: cannot run", "seeded: passed"])

    def test_a_result_tells_that_its_own_files_have_changes(self):
        self.write("b.cpp", "int other;\n")
        self.run_all("good", "long")
        self.assertRegex(self.row("good"), r" \| [0-9a-f]{10} with changes \| [0-9a-f]{12} \| passed")
        self.assertRegex(self.row("long"), r" \| [0-9a-f]{10} \| [0-9a-f]{12} \| passed")

    def test_a_part_that_takes_the_commit_does_not_run_with_changes_of_its_files(self):
        self.write("a.cpp", "int other;\n")
        self.assertEqual(self.run_all("seeded")[1], ["seeded"])
        self.write("b.cpp", "int other;\n")
        self.assertEqual(self.run_all("seeded")[1], [])
        self.commit()
        self.assertEqual(self.run_all("seeded")[1], ["seeded"])

    def test_a_seed_is_of_a_version(self):
        self.run_all("seeded")
        self.assertIn("passed: `seed 10203`", self.row("seeded"))
        self.write("a.cpp", "int other;\n")
        self.run_all("seeded")
        self.assertIn("passed: `seed 10203`", self.row("seeded"))
        self.write("meson.build", PROJECT.format("1.3.0"))
        self.assertIn("seeded", self.run_all()[1])
        self.assertIn("passed: `seed 10300`", self.row("seeded"))

    def test_a_file_that_changes_during_a_part_fails_it(self):
        command = "command = sh -c 'date >>docs/a.md; date >>a.cpp'\ncovers = a\ntakes = 1 s\n"
        self.write(verification.PARTS, f"[changed]\n{command}code = a.cpp\n[other]\n{command}code = docs\n")
        self.assertEqual(self.run_all()[0], 1)
        self.assertRegex(self.row("changed"), "failed: `files changed during the check")
        self.assertRegex(self.row("other"), "passed")

    def test_an_interruption_keeps_results_ends_all_processes_and_can_be_resumed(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                for path in (os.path.join(self.root, verification.PAGE), self.runs):
                    if os.path.exists(path):
                        os.remove(path)
                os.mkfifo(self.fifo)
                process = self.start(WAITS=self.fifo)
                with open(self.fifo, encoding="utf-8") as fifo:
                    self.assertEqual(fifo.readline(), "started\n")
                    process.send_signal(number)
                    _, errors = process.communicate(timeout=100)
                    self.assertEqual(fifo.read(), "")  # ends when the last process has closed it
                os.remove(self.fifo)
                self.assertEqual(process.returncode, 130)
                self.assertIn("interrupted: long keeps its earlier result", errors)
                self.assertEqual(self.ran(), ["good", "bad", "long"])
                self.assertIn("passed: `2 passed", self.row("good"))
                self.assertIn("not run", self.row("long"))
                self.assertEqual(self.run_all()[1], ["bad", "long", "seeded"])


class CountedTests(unittest.TestCase):
    CASES = "[==========] Running 2 tests from 1 test suite.\n[       OK ] A.B (1 ms)\n"

    def counted(self, result, stdout, name="", suite="unit"):
        test = {"name": f"hashed_wheel_timer:{suite} / a", "result": result, "stdout": stdout}
        with contextlib.redirect_stdout(io.StringIO()):
            return count_tests.count(test, name)

    def test_each_case_counts(self):
        failed = self.CASES + "[  FAILED  ] A.C (2 ms)\n[  FAILED  ] A.C\n"
        self.assertEqual(self.counted("OK", self.CASES + "[  PASSED  ] 1 test.\n"), (1, 0))
        self.assertEqual(self.counted("FAIL", failed), (1, 1))

    def test_a_program_that_ends_early_fails(self):
        self.assertEqual(self.counted("FAIL", self.CASES), (1, 1))
        self.assertEqual(self.counted("OK", self.CASES), (1, 1))
        self.assertEqual(self.counted("OK", "", "a machine"), (0, 1))

    def test_a_program_without_cases_is_one_test(self):
        self.assertEqual(self.counted("OK", ""), (1, 0))
        self.assertEqual(self.counted("TIMEOUT", ""), (0, 1))
        self.assertEqual(self.counted("SKIP", ""), (0, 0))
        self.assertEqual(self.counted("OK", "text", "a machine"), (1, 0))
        self.assertEqual(self.counted("OK", "", "a machine", "headers"), (1, 0))


if __name__ == "__main__":
    unittest.main()
