from __future__ import annotations

import io
import json
import sys
import tempfile
import time
import unittest
from pathlib import Path

from .. import measure, process, runners
from ..plan import OURS, Config, Entry, Section, Step
from ..progress import Clock, Progress, duration
from ..results import FAILED, OK, TIMED_OUT, UNSUPPORTED, Runner
from ..runners import Need, Paths, Program
from . import made_up

CONFIG = Config("idle", seconds=1)
IDLE = made_up.round_of(CONFIG, OURS, 1)


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


class ProcessTest(unittest.TestCase):
    def test_a_child_that_hangs_is_ended_with_its_own_children(self) -> None:
        code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
        start = time.monotonic()
        outcome = process.run(python(code), timeout=0.3)
        self.assertTrue(outcome.timed_out)
        self.assertLess(time.monotonic() - start, 5)

    def test_a_program_that_is_not_there(self) -> None:
        self.assertEqual(process.run(["/no/such/program"], 1).status, 127)


class StepTest(unittest.TestCase):
    def run_code(self, code: str, timeout: float = 10) -> tuple[str, str]:
        run = measure.run_step(Step(1, CONFIG, OURS), python(code), 0, timeout, Path("/some/where"))
        return run.status, run.message

    def test_ok(self) -> None:
        self.assertEqual(self.run_code(f"print({json.dumps(IDLE)!r})"), (OK, ""))

    def test_unsupported(self) -> None:
        self.assertEqual(self.run_code('print(\'{"unsupported": "cannot"}\')'), (UNSUPPORTED, "cannot"))

    def test_failed(self) -> None:
        status, message = self.run_code("import sys; sys.exit('no such file: /some/where/x')")
        self.assertEqual((status, message), (FAILED, "exit status 1: no such file: ./x"))
        self.assertEqual(self.run_code("print('hello')"), (FAILED, "0 rounds instead of 1"))
        self.assertIn("killed by signal 9", self.run_code("import os; os.kill(os.getpid(), 9)")[1])

    def test_timed_out(self) -> None:
        self.assertEqual(self.run_code("import time; time.sleep(60)", 0.3)[0], TIMED_OUT)


class MeasureTest(unittest.TestCase):
    def test_what_cannot_be_done_is_asked_for_once(self) -> None:
        section = Section("idle", "Idle", "idle", (Entry(CONFIG),))
        results = made_up.results([])
        results.plan, results.runs, results.rounds = [section], [], 3
        programs = []
        for name, output in ((OURS, IDLE), ("b", {"unsupported": "cannot"})):
            command = python(f"print({json.dumps(output)!r})")
            program = Program(name, name, (), (), command, 0, True, Path("/"))
            programs.append((program, Runner(name, name, "1", "-", True, 0)))
        saved = []
        measure.measure(results, programs, 10, Path("/x"), Progress(io.StringIO()), lambda: saved.append(1))
        self.assertEqual(
            sorted((run.runner, run.status) for run in results.runs), [("b", UNSUPPORTED)] + [(OURS, OK)] * 3
        )
        self.assertEqual(len(saved), 3)


class PrepareTest(unittest.TestCase):
    def prepare(self, **more: object) -> tuple[list[str], list[str], str]:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            fields = {"name": "p", "title": "P", "needs": (), "build": (), "warmup": 0, "cross_thread": True}
            fields.update(run=python('print(\'{"version": "1"}\')'), source=root, **more)
            said: list[str] = []
            paths = Paths(root, root / "build", root / "build")
            ready, left_out = runners.prepare([Program(**fields)], paths, said.append)  # type: ignore[arg-type]
            return [runner.version for _, runner in ready], [one.reason for one in left_out], "\n".join(said)

    def test_ready(self) -> None:
        self.assertEqual(self.prepare()[:2], (["1"], []))

    def test_a_tool_is_missing(self) -> None:
        reason = "needs no-such-tool (package x)"
        self.assertEqual(self.prepare(needs=(Need("no-such-tool", "x", ""),))[1], [reason])

    def test_a_build_that_fails_shows_the_end_of_its_log(self) -> None:
        _, reasons, said = self.prepare(build=(python("print('line\\n' * 50 + 'the end'); raise SystemExit(1)"),))
        self.assertEqual(reasons, ["its build failed, see build/peers/p.log"])
        self.assertIn("the end", said)
        self.assertLess(said.count("line"), 20)


class ProgressTest(unittest.TestCase):
    def test_guesses_learn_from_what_was_measured(self) -> None:
        clock = Clock({"a": 0, "b": 0})
        first, other = Step(1, CONFIG, "a"), Step(1, CONFIG, "b")
        guess = clock.estimate(other)
        clock.took(first, 10 * guess)
        self.assertAlmostEqual(clock.estimate(first), 10 * guess)
        self.assertAlmostEqual(clock.estimate(other), 10 * guess)

    def test_few_lines_where_they_cannot_be_rewritten(self) -> None:
        stream = io.StringIO()
        progress = Progress(stream)
        for _ in range(100):
            progress.show(Step(1, CONFIG, "a"), "A", 5, 0.5, 100)
        self.assertEqual(stream.getvalue(), " 50%, 2 min left, round 1 of 5: A: idle, tick 1 ms\n")

    def test_duration(self) -> None:
        self.assertEqual([duration(0), duration(89), duration(600)], ["1 s", "89 s", "10 min"])


if __name__ == "__main__":
    unittest.main()
