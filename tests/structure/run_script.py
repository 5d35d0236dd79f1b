"""Runs ./run in a small project of its own, whose tests and examples take no time to build.

usage: run_script.py SOURCE_ROOT
"""

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE_ROOT = sys.argv.pop(1)
COUNT = "tests/verification/count_tests.py"
TOOLS = """ar as c++ cat cc date dirname env flock g++ gcc git id ld meson mkdir mv ninja nproc pkg-config python3 rm sh
    sleep touch""".split()
EXAMPLE = "executable('{0}', '{0}/main.cpp', {1})\n"
SLOW = "custom_target(output: 'slow.h', command: ['sh', '-c', 'touch @0@; exec sleep 100'.format(started)])"
PROJECT = """project('small', 'cpp')
started = meson.project_source_root() / 'started'
sh = find_program('sh')
test_program = custom_target(output: 'made', command: ['touch', '@OUTPUT@'])
alias_target('first', test_program)
test('first_test', sh, args: ['-c', '{first}'], suite: 'first', depends: test_program)
test('last_test', sh, args: ['-c', 'exit 0'], suite: 'unit')
subdir('docs/examples')
"""
PROGRAM = "int main() {}\n"
WRONG_PROGRAM = "int main() { return a name that nothing declares; }\n"


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        self.root = os.path.join(folder.name, "project")
        os.mkdir(self.root)
        shutil.copy(os.path.join(SOURCE_ROOT, "run"), self.root)
        shutil.copytree(os.path.join(SOURCE_ROOT, ".run"), os.path.join(self.root, ".run"))
        shutil.copy(os.path.join(SOURCE_ROOT, "meson_options.txt"), self.root)
        self.write(COUNT, "")
        shutil.copy(os.path.join(SOURCE_ROOT, COUNT), os.path.join(self.root, COUNT))
        # Without dpkg-query and apt-get, ./run installs nothing.
        self.path = os.path.join(folder.name, "bin")
        os.mkdir(self.path)
        for tool in TOOLS:
            if program := shutil.which(tool):
                os.symlink(program, os.path.join(self.path, tool))

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def make_project(self, first="exit 0", needs="", **programs):
        """Makes a project with these examples. `needs` is an argument of their targets."""
        self.write("meson.build", PROJECT.format(first=first))
        self.write("docs/examples/meson.build", "".join(EXAMPLE.format(name, needs) for name in programs))
        for name, text in programs.items():
            self.write(f"docs/examples/{name}/main.cpp", text)

    def start(self, *command, **options):
        settings = ("CI", "CXX", "CXXFLAGS", "MAKEFLAGS")
        environment = {name: value for name, value in os.environ.items() if name not in settings}
        return subprocess.Popen([os.path.join(self.root, "run"), *command], stdin=subprocess.DEVNULL, encoding="utf-8",
                                start_new_session=True, env={**environment, "PATH": self.path}, **options)

    def output_of(self, *command, **options):
        process = self.start(*command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
        output, _ = process.communicate()
        return process.returncode, output

    def expect(self, status, last_line, *command, **options):
        """Returns the output of ./run, which must end so."""
        ended, output = self.output_of(*command, **options)
        self.assertEqual((ended, output.splitlines()[-1]), (status, last_line), output)
        return output

    def another_user(self):
        """Permissions do not bind the superuser, so that a test of them runs as another user."""
        return {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}

    def interrupt(self, process):
        """Interrupts the process group, as a terminal does, when the slow step of the build has started."""
        while process.poll() is None and not os.path.exists(os.path.join(self.root, "started")):
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)

    def test_an_interrupted_build_ends_with_one_line_and_130(self):
        self.make_project(needs=SLOW, rpc_timeouts=PROGRAM)
        process = self.start("demo", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.interrupt(process)
        self.assertEqual(process.communicate()[0].splitlines()[-2:], ["building build/demo", "run: interrupted"])
        self.assertEqual(process.returncode, 130)

    def test_a_build_interrupted_on_a_terminal_shows_no_traceback(self):
        self.make_project(needs=SLOW, rpc_timeouts=PROGRAM)
        terminal, end = pty.openpty()
        process = self.start("demo", stdout=end, stderr=end)
        os.close(end)
        self.interrupt(process)
        output = b""
        try:
            while part := os.read(terminal, 4096):
                output += part
        except OSError:  # the other end is closed
            pass
        os.close(terminal)
        self.assertNotIn(b"Traceback", output)
        self.assertEqual(output.splitlines()[-1], b"run: interrupted", output)
        self.assertEqual(process.wait(), 130)

    def test_a_folder_that_cannot_be_written_ends_with_one_line(self):
        self.make_project(rpc_timeouts=PROGRAM)
        self.write("build/last.log", "an old log\n")
        os.chmod(os.path.join(self.root, "build"), 0o555)
        self.addCleanup(os.chmod, os.path.join(self.root, "build"), 0o755)
        last_line = f"run: cannot write in {self.root}/build"
        self.assertEqual(self.expect(1, last_line, "demo", **self.another_user()), last_line + "\n")

    def test_a_log_of_another_user_is_no_obstacle(self):
        self.make_project(rpc_timeouts=WRONG_PROGRAM)
        self.write("build/last.log", "an old log\n")
        os.chmod(os.path.join(self.root, "build/last.log"), 0o444)
        if os.geteuid() == 0:
            os.chown(os.path.join(self.root, "build"), 65534, 65534)
        status, output = self.output_of("demo", **self.another_user())
        self.assertEqual((status, "main.cpp" in output, "an old log" in output), (1, True, False), output)

    def test_a_call_by_a_relative_path_works_with_cdpath(self):
        above = os.path.dirname(self.root)
        subprocess.run(["project/run", "help"], cwd=above, env={"PATH": self.path, "CDPATH": above}, check=True,
                       stdout=subprocess.DEVNULL)

    def test_a_wrong_command_ends_with_its_message(self):
        self.expect(2, "run: no such command: walk", "walk")

    def test_no_function_sets_a_variable_that_all_scripts_share(self):
        scripts = subprocess.check_output("cat run .run/*.sh", shell=True, cwd=SOURCE_ROOT, encoding="utf-8")
        for name in {*re.findall(r"^(\w+)=", scripts, re.M)} - {"has_turn"}:  # take_turn() remembers
            self.assertNotRegex(scripts, rf"\n .*(\bfor {name}\b|(?<![-\w]){name}=)")

    def test_the_demo_builds_only_what_it_runs(self):
        self.make_project(wrong=WRONG_PROGRAM, rpc_timeouts=PROGRAM)
        status, output = self.output_of("demo")
        self.assertEqual(status, 0, output)

    def test_a_demo_whose_needs_are_missing_says_so(self):
        self.make_project(rpc_timeouts=PROGRAM)
        self.write("docs/examples/schedules/main.cpp", PROGRAM)
        self.expect(1, "run: schedules cannot be built: what it needs is missing", "demo", "schedules")

    def test_the_first_tests_run_before_the_examples_are_built_and_a_named_test_without_them(self):
        self.make_project(wrong=WRONG_PROGRAM)
        output = self.expect(1, "run: the build failed", "test")
        self.assertIn("first_test", output)
        self.assertNotIn("last_test", output)
        self.expect(0, "1 passed, 0 failed", "test", "first_test")

    def test_the_count_of_passed_and_failed_tests_is_that_of_all(self):
        self.make_project(right=PROGRAM)
        self.expect(0, "2 passed, 0 failed", "test")
        self.expect(0, "1 passed, 0 failed", "test", "last_test")
        self.make_project(first="exit 1", right=PROGRAM)
        self.expect(1, "1 passed, 1 failed", "test")


if __name__ == "__main__":
    unittest.main()
