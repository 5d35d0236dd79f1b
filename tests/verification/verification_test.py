"""Tests of verification.py, with made-up parts in a temporary tree."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(HERE, "verification.py")
sys.path.insert(0, HERE)
import verification  # noqa: E402

# Each part appends its name to a file outside the tree.
PARTS = """
[good]
command = sh -c 'echo good >>"$RUNS"; echo first; echo "2 passed, 0 failed"; echo last'
covers = what passes
takes = 1 s
result = passed, \\d+ failed

[bad]
command = sh -c 'echo bad >>"$RUNS"; echo a | tr a "|"; exit 3'
covers = what fails
takes = 1 s

[long]
command = sh -c 'echo long >>"$RUNS"; test -z "$WAITS" && exit; exec 3>"$WAITS"; (echo started; sleep 60; echo late) >&3 & wait'
covers = what is interrupted
takes = 10 min

[absent]
command = no_such_program_anywhere
covers = what needs a program
takes = 1 s
needs = no_such_program_anywhere

[seeded]
command = sh -c 'echo seeded >>"$RUNS"; echo "seed $0"' {seed}
covers = what each tree has its own number for
takes = 1 s
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
        self.write("docs/a.md", "text\n")
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
    def test_every_part_runs_and_the_page_has_its_result(self):
        status, ran, output, _ = self.run_all()
        self.assertEqual(status, 1)
        self.assertEqual(ran, ["good", "bad", "long", "seeded"])
        self.assertRegex(self.row("good"), r"\| \d{4}-\d\d-\d\d \d\d:\d\d \| \d+ s \| [0-9a-f]{10} \| passed: `2 passed, 0 failed` \|$")
        self.assertRegex(self.row("bad"), r" \| failed: `/` \|$")
        self.assertRegex(self.row("absent"), r" \| not run: no_such_program_anywhere is not installed \|$")
        self.assertRegex(self.row("seeded"), r"`seed \d+` \|$")
        self.assertEqual(output.split("\n")[:2], ["good: passed", "bad: failed"])

    def test_a_second_run_repeats_only_what_has_not_passed(self):
        self.run_all()
        self.assertEqual(self.run_all()[1], ["bad"])

    def test_a_named_part_runs_again_and_no_other(self):
        self.run_all()
        status, ran, _, _ = self.run_all("good")
        self.assertEqual((status, ran), (0, ["good"]))
        self.assertIn("failed", self.row("bad"))

    def test_a_part_that_cannot_run_is_no_failure(self):
        self.assertEqual(self.run_all("absent")[:2], (0, []))

    def test_wrong_names_are_told_in_one_line_and_nothing_runs(self):
        status, ran, output, errors = self.run_all("good", "wrong", "false")
        self.assertEqual((status, ran, output), (2, [], ""))
        self.assertRegex(errors, r"^run: no such part of all: wrong false \(there are: good bad .*\)\n$")
        self.assertFalse(os.path.exists(os.path.join(self.root, verification.PAGE)))

    def test_results_are_of_one_tree_and_the_page_is_not_part_of_it(self):
        self.run_all()
        self.commit()  # of the page
        self.assertEqual(self.run_all()[1], ["bad"])
        self.write("docs/a.md", "other text\n")
        self.run_all("bad")
        self.assertRegex(self.row("good"), r"not run on this tree; an earlier one passed \|$")
        self.assertRegex(self.row("bad"), r" [0-9a-f]{10} with changes \| failed")
        self.assertEqual(self.run_all()[1], ["good", "bad", "long", "seeded"])

    def test_each_tree_has_a_seed_of_its_own(self):
        self.run_all("seeded")
        seed = re.compile(r"passed: `seed (\d+)`")
        before = seed.search(self.row("seeded"))[1]
        self.write("docs/a.md", "other text\n")
        self.run_all("seeded")
        self.assertNotEqual(before, seed.search(self.row("seeded"))[1])

    def test_the_list_of_unnoticeable_faults_changes_the_tree_but_not_its_seed(self):
        self.run_all("seeded")
        before = self.row("seeded")
        self.write(verification.UNNOTICEABLE, "00054b9c the result is the same\n")
        self.assertEqual(self.run_all()[1], ["good", "bad", "long", "seeded"])
        seed = re.compile(r"passed: `seed (\d+)`")
        self.assertEqual(seed.search(before)[1], seed.search(self.row("seeded"))[1])

    def test_a_tree_that_changes_during_a_part_fails_it(self):
        self.write(verification.PARTS, "[changing]\ncommand = sh -c 'date >>docs/a.md'\ncovers = a\ntakes = 1 s\n")
        self.assertEqual(self.run_all()[0], 1)
        self.assertRegex(self.row("changing"), "failed: `the tree changed during the check")

    def test_an_interruption_keeps_results_ends_all_processes_and_can_be_resumed(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                self.write("docs/a.md", f"text {number}\n")
                if os.path.exists(self.runs):
                    os.remove(self.runs)
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


class Table(unittest.TestCase):
    def test_every_part_has_a_command_a_cell_and_a_duration(self):
        parts = verification.read_parts(os.path.dirname(os.path.dirname(HERE)))
        for name in parts.sections():
            with self.subTest(name):
                self.assertLessEqual({*parts[name]}, {"command", "covers", "takes", "result", "needs"})
                self.assertRegex(verification.command_of(parts[name], 123456789), r"^\./run (check |test$|demo$)")
                self.assertRegex(parts[name]["takes"], r"^\d+ min$")
                self.assertNotIn("|", parts[name]["covers"])

    def test_every_step_of_the_check_is_in_a_part(self):
        root = os.path.dirname(os.path.dirname(HERE))
        with open(os.path.join(root, ".run/check.sh"), encoding="utf-8") as file:
            text = file.read()
        cases = text[text.index("case $1 in", text.index("steps_of() {")):text.index("*) return 1")]
        names = {name for line in cases.splitlines() if ") " in line for name in line.split(")")[0].split(" | ")}
        names = {name.strip() for name in names}
        alone = text[text.index("    all\\ *"):]
        names |= {name.strip().removesuffix("\\ *") for name in alone[:alone.index(")")].split(" | ")} - {"all"}
        parts = verification.read_parts(root)
        run = {word for name in parts.sections() for word in parts[name]["command"].split()}
        self.assertGreater(len(names), 15)
        self.assertEqual(names - run, {"reproducible", "sbom"})  # steps of packages


if __name__ == "__main__":
    unittest.main()
