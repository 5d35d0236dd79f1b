"""Runs test programs: to measure the places that each case reaches, and to see whether a case notices a fault."""

import concurrent.futures
import json
import os
import re
import signal
import subprocess
import tempfile
import time

WORKERS = 2
ATTEMPTS = 3
QUICK = 0.3  # seconds; one process runs all quicker cases of a program
CASE = re.compile(r"^ +([^\s#]+)", re.M)


def limit_for(seconds):
    """Returns the seconds after which a program counts as hung, even on a busy machine."""
    return 6 + 6 * seconds


def run(command, cases, limit, **environment):
    """Runs a test, if it uses GoogleTest only these cases. Returns how it failed, or "" if it passed."""
    options = [f"--gtest_filter={':'.join(cases)}", "--gtest_fail_fast", "--gtest_brief=1"]
    process = subprocess.Popen(
        command + (options if uses_googletest(command) else []),
        env={**os.environ, "MALLOC_PERTURB_": "0", **environment}, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        cwd=tempfile.gettempdir())
    try:
        status = process.wait(limit)
        return "" if status == 0 else "failed" if status == 1 else "crashed"
    except subprocess.TimeoutExpired:
        return "hung"
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)  # its children too
        except ProcessLookupError:
            pass
        process.wait()


def uses_googletest(command):
    return len(command) == 1


def in_parallel(function, items):
    """Calls the function for each item on several threads. Yields the results in any order."""
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as workers:
        futures = [workers.submit(function, item) for item in items]
        try:
            for future in concurrent.futures.as_completed(futures):
                yield future.result()
        except BaseException:
            workers.shutdown(cancel_futures=True)
            raise


class Trials:
    """Knows the places that each test case reaches. They are measured again when its program has been rebuilt.

    `programs` is {name: command}. A test without GoogleTest has one case, with an empty name. Cases that take more than
    `slowest` seconds are left out.
    """

    def __init__(self, folder, programs, slowest):
        self.folder, self.programs, self.slowest = folder, programs, slowest
        self.file = os.path.join(folder, "cases.json")
        self.cases = []  # {program, case, built, seconds, reached: numbers, failed}
        self.measure()

    def names_of(self, program):
        command, suite = self.programs[program], ""
        if not uses_googletest(command):
            yield ""
            return
        for line in subprocess.run([*command, "--gtest_list_tests"], capture_output=True, text=True,
                                   check=True).stdout.splitlines():
            if not line.startswith(" "):
                suite = line.split()[0]
            elif CASE.match(line) and suite.endswith("."):
                yield suite + CASE.match(line)[1]

    def measure(self):
        built = {name: os.stat(command[0]).st_mtime_ns for name, command in self.programs.items()}
        if os.path.exists(self.file):
            known = json.load(open(self.file))
            self.cases = [case for case in known if built.get(case["program"]) == case["built"]]
        have = {(case["program"], case["case"]) for case in self.cases}
        missing = [(name, case, built[name]) for name in self.programs for case in self.names_of(name)
                   if (name, case) not in have]
        for count, case in enumerate(in_parallel(self.measure_case, missing), 1):
            self.cases.append(case)
            if count % 100 == 0 or count == len(missing):
                print(f"{count} of {len(missing)} cases measured", flush=True)
                self.save()
        failed = [f"{case['program']} {case['case']}" for case in self.cases if case["failed"]]
        if failed:
            print("left out, because they fail without a fault or take too long:", *failed, sep="\n  ", flush=True)
        self.cases = [case for case in self.cases if not case["failed"]]

    def save(self):
        with open(self.file + ".new", "w") as file:
            json.dump(self.cases, file)
        os.replace(self.file + ".new", self.file)

    def measure_case(self, item):
        program, case, built = item
        with tempfile.NamedTemporaryFile(dir=self.folder) as reached:
            begun = time.monotonic()
            failed = run(self.programs[program], [case], self.slowest, HWT_MUTANTS_REACHED=reached.name)
            seconds = time.monotonic() - begun
            numbers = [number for number, byte in enumerate(reached.read()) if byte]
        return {"program": program, "case": case, "built": built, "seconds": seconds, "reached": numbers,
                "failed": failed}

    def plan(self, number):
        """Returns (seconds, program, cases) for the cases that reach this place, the quickest first."""
        together, alone = {}, []
        for case in self.cases:
            if number in case["reached"]:
                if case["seconds"] < QUICK:
                    together.setdefault(case["program"], []).append(case)
                else:
                    alone.append([case])
        groups = [*together.values(), *alone]
        return sorted((sum(case["seconds"] for case in group), group[0]["program"], [case["case"] for case in group])
                      for group in groups)

    def notice(self, number):
        """Returns the program that notices the fault, and how. Returns ("", "") if no program does."""
        for seconds, program, cases in self.plan(number):
            limit = limit_for(seconds)
            def broken():
                return run(self.programs[program], cases, limit, HWT_MUTANT=str(number))

            # On a busy machine a program may fail without the fault. So the fault counts as noticed only if the program
            # fails with it, passes without it, and fails with it again. If it fails without the fault, all is repeated.
            for _ in range(ATTEMPTS):
                how = broken()
                if not how:
                    break
                if not run(self.programs[program], cases, limit) and broken():
                    return program, how
        return "", ""
