from __future__ import annotations

import dataclasses
import io
import json
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

from .. import cli, runners, system
from ..measure import Progress, duration, measure, run_step
from ..plan import BRPC, NETTY, OURS, WORKLOADS, Config, Entry, Section, Step
from ..results import FAILED, OK, TIMED_OUT, UNSUPPORTED, Difference, Runner
from ..runners import BadOutput, Paths, Program, parse_round
from ..system import Failure, WrongUsage
from . import made_up

CONFIG = Config("idle", seconds=1)
IDLE = made_up.printed(CONFIG, OURS, 1)
CHURN = Config("churn", 2, 1, 1000, 10)
LATE = Config("late", count=10)


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


class StepTest(unittest.TestCase):
    def run_code(self, code: str, timeout: float = 10) -> tuple[str, str]:
        run = run_step(Step(1, CONFIG, OURS), python(code), 0, timeout, Path("/some/where"))
        return run.status, run.message

    def test_outcomes(self) -> None:
        for code, status, message in (
            (f"print({json.dumps(IDLE)!r})", OK, ""),
            ('print(\'{"unsupported": "cannot"}\')', UNSUPPORTED, "cannot"),
            ("import sys; sys.exit('no such file: /some/where/x')", FAILED, "exit status 1: no such file: ./x"),
            ("print('hello')", FAILED, "0 objects instead of 1"),
            ("import os; os.kill(os.getpid(), 9)", FAILED, "killed by signal 9:"),
        ):
            self.assertEqual(self.run_code(code), (status, message))

    def test_a_child_that_hangs_is_ended_with_its_own_children_and_its_output_is_kept(self) -> None:
        own_child = "print('ready', flush=True); import time; time.sleep(60)"
        code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {own_child!r}])"
        start = time.monotonic()
        with mock.patch.object(system, "GRACE_SECONDS", 20):
            late = system.run(python(code), 6)
        self.assertEqual((late.timed_out, late.ok, late.out), (True, False, "ready\n"))
        # A process that goes on keeps the pipe open, and the call then takes GRACE_SECONDS longer.
        self.assertLess(time.monotonic() - start, 6 + 20)

    def test_a_run_that_takes_too_long(self) -> None:
        self.assertEqual(self.run_code("import time; time.sleep(60)", 0.3)[0], TIMED_OUT)

    def test_a_missing_program(self) -> None:
        self.assertEqual(system.run(["/no/such/program"], 1).status, 127)


class MeasureTest(unittest.TestCase):
    def test_an_unsupported_workload_runs_once(self) -> None:
        results = made_up.results([Section("idle", "Idle", "idle", (Entry(CONFIG),))], rounds=3)
        results.runs = []
        programs = []
        for name, output in ((OURS, IDLE), ("b", {"unsupported": "cannot"})):
            program = Program(name, name, python(f"print({json.dumps(output)!r})"))
            programs.append((program, Runner(name, name, "1", "-", True, 0)))
        nothing = Program("c", "c", ("/no/such/program",), workloads=("churn",))
        programs.append((nothing, Runner("c", "c", "1", "-", True, 0, nothing.workloads)))
        saved: list[int] = []
        stream = io.StringIO()
        measure(results, programs, 10, Path("/x"), Progress(stream), lambda: saved.append(1))
        statuses = sorted((run.runner, run.status) for run in results.runs)
        self.assertEqual(statuses, [("b", UNSUPPORTED)] + [(OURS, OK)] * 3)
        self.assertEqual(len(saved), 3)
        # Few lines, because the stream is no terminal.
        self.assertRegex(stream.getvalue(), r"^  0%, \d+ s left, round 1 of 3: .*: idle, tick 1 ms\n$")

    def test_a_resumed_run_repeats_only_configurations_that_are_not_complete(self) -> None:
        other = Config("idle", tick_ms=100, seconds=1)
        plan = [Section("idle", "Idle", "idle", (Entry(CONFIG), Entry(other)))]
        results = made_up.results(plan, rounds=2)
        names = [OURS, NETTY]
        code = "import json, sys; print(json.dumps({**" + repr(IDLE) + ", 'tick_ms': int(sys.argv[3]), 'cpu_ms_per_s': -1}))"
        programs = [(Program(name, name, python(code)), Runner(name, name, "1", "-", True, 0)) for name in names]
        results.runs = [run for run in results.runs if run.runner in names]
        lost = next(run for run in results.runs if (run.runner, run.round, run.config) == (NETTY, 1, other))
        results.runs = [run for run in results.runs if run is not lost and (run.round, run.config) != (2, CONFIG)]
        saved: list[int] = []
        measure(results, programs, 10, Path("/x"), Progress(io.StringIO()), lambda: saved.append(1))
        new = sorted((run.round, run.config.tick_ms, run.runner) for run in results.runs if run.result["cpu_ms_per_s"] == -1)  # type: ignore[index]
        self.assertEqual(new, [(1, 100, OURS), (1, 100, NETTY), (2, 1, OURS), (2, 1, NETTY)])
        self.assertEqual((len(results.runs), len(saved)), (8, 2))

    def test_only_a_run_of_the_same_plan_and_programs_is_resumed(self) -> None:
        found, earlier = made_up.results(rounds=2), made_up.results(rounds=2)
        found.runs, found.date = [], "2025-02-03T04:05:06Z"
        earlier.unequal = [Difference(NETTY, CONFIG, 1, "fired 5 instead of 0")]
        cli._resume(found, earlier, "partial.json")
        self.assertEqual((found.runs, found.date, found.unequal), (earlier.runs, earlier.date, earlier.unequal))
        for change in ({"commit": "1"}, {"rounds": 3}, {"runners": []}, {"plan": []}, {"machine": {"cpu": "other"}}):
            with self.assertRaisesRegex(Failure, "partial.json is a run with another"):
                cli._resume(made_up.results(rounds=2), dataclasses.replace(earlier, **change), "partial.json")  # type: ignore[arg-type]

    def test_duration(self) -> None:
        self.assertEqual([duration(0), duration(89), duration(600)], ["1 s", "89 s", "10 min"])


class RoundTest(unittest.TestCase):
    def text(self, config: Config, **changes: object) -> str:
        return json.dumps({**made_up.printed(config, OURS, 1), **changes})

    def test_right(self) -> None:
        result = parse_round("WARNING: a runtime speaks\n" + self.text(CHURN) + "\n", CHURN)
        self.assertEqual(result["cpu_ns_per_op"], 51)
        parse_round(self.text(LATE), LATE)
        # Some systems do not count wake-ups.
        self.assertIsNone(parse_round(self.text(CONFIG, wakeups_per_s=None), CONFIG)["wakeups_per_s"])

    def test_wrong(self) -> None:
        figure = "no figure for CPU ns per cancel"
        for config, text, message in (
            (CHURN, self.text(CHURN, count=9), "count 9 instead of 10"),
            (CHURN, "", "0 objects instead of 1"),
            (CHURN, self.text(CHURN) + "\n" + self.text(CHURN), "2 objects instead of 1"),
            (CHURN, "{broken", "not JSON"),
            (CHURN, self.text(CHURN, cpu_ns_per_op=None), figure),
            (CHURN, self.text(CHURN, cpu_ns_per_op="fast"), figure),
            (CHURN, self.text(CHURN, cpu_ns_per_op=float("nan")), figure),
            (CHURN, self.text(CHURN, fired_sum=None), "no fired_sum"),
            (LATE, self.text(LATE, late_us=[1, 2, 3]), "not 1001 numbers"),
            (LATE, self.text(LATE, late_us=["1"] * 1001), "not 1001 numbers"),
        ):
            with self.assertRaisesRegex(BadOutput, message, msg=text):
                parse_round(text, config)


class PeersTest(unittest.TestCase):
    def prepare(self, **more: object) -> tuple[list[str], list[str], str]:
        with tempfile.TemporaryDirectory() as folder:
            paths = Paths(Path(folder), Path(folder) / "build", Path(folder) / "build")
            said: list[str] = []
            program = Program("p", "P", python('print(\'{"version": "1"}\')'), **more)  # type: ignore[arg-type]
            ready, left_out = runners.prepare([program, program], paths, said.append)
            return [runner.version for _, runner in ready], [one.reason for one in left_out], "\n".join(said)

    def test_all_peers_can_be_read(self) -> None:
        root = Path(__file__).resolve().parents[3]
        programs = runners.load(Paths(root, root / "build", root / "build" / "compare"))
        self.assertEqual([program.name for program in programs[:2]], [OURS, NETTY])
        inside = next(program for program in programs if program.name == "tokio-inside")
        self.assertEqual((inside.run[-1], inside.workloads), ("tokio-inside", ("churn", "handoff", "touch")))
        for program in programs:
            self.assertLessEqual(set(program.workloads), set(WORKLOADS))
            self.assertNotIn("{", " ".join([*program.run, *sum(program.build, ())]))

    def test_brpc_needs_the_folder_into_which_it_was_installed(self) -> None:
        root = Path(__file__).resolve().parents[3]
        for prefix, missing in ((None, "needs --brpc: a folder into which brpc was installed"), (Path("/some/where"), "")):
            paths = Paths(root, root / "build", root / "build" / "compare", prefix)
            brpc = next(program for program in runners.load(paths) if program.name == BRPC)
            with mock.patch("shutil.which", return_value="/usr/bin/cmake"):
                self.assertEqual(brpc.missing(), missing)
        self.assertIn("-DBRPC=/some/where", brpc.build[0])

    def test_a_shared_build_runs_once(self) -> None:
        self.assertEqual(self.prepare(), (["1", "1"], [], ""))
        self.assertEqual(self.prepare(build=(python("pass"),)), (["1", "1"], [], "building P"))

    def test_missing_tools_and_programs(self) -> None:
        need = runners.Need("no-such-tool", "x")
        self.assertEqual(self.prepare(needs=(need,))[1], ["needs no-such-tool (package x)"] * 2)
        program = Program("p", "P", ("/no/such",), (runners.Need(package="a-package"),))
        self.assertEqual(program.not_built(), "its program was not built: needs a-package")

    def test_a_build_that_fails_shows_the_end_of_its_log(self) -> None:
        _, reasons, said = self.prepare(build=(python("print('line\\n' * 50 + 'the end'); raise SystemExit(1)"),))
        self.assertEqual(reasons, ["its build failed, see build/peers/p.log"] * 2)
        self.assertIn("the end", said)
        self.assertLess(said.count("line\n"), 40)


class OptionsTest(unittest.TestCase):
    def test_right(self) -> None:
        for arguments, rounds, whole in (
            ([], 5, True),
            (["--quick"], 1, False),
            (["--quick", "--rounds", "2"], 2, False),
            (["--workloads", "churn"], 5, False),
            (["--peers", "netty"], 5, False),
        ):
            chosen = cli.parse(arguments)
            self.assertEqual((chosen.rounds, chosen.whole), (rounds, whole), arguments)
        self.assertEqual(cli.parse([]).workloads, list(WORKLOADS))

    def test_results_do_not_name_the_folder_of_brpc(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            header = Path(folder) / "include" / "bthread" / "timer_thread.h"
            header.parent.mkdir(parents=True)
            header.touch()
            for given, stored in ((["--brpc", folder], ["--brpc", "PREFIX"]), ([f"--brpc={folder}"], ["--brpc=PREFIX"])):
                chosen = cli.parse([*given, "--resume"])
                self.assertEqual((chosen.brpc, chosen.whole), (Path(folder), True))
                self.assertEqual(chosen.command, ["./run", "compare", *stored, "--resume"])

    def test_wrong(self) -> None:
        rounds, workloads = ("--rounds 4", "--rounds x", "--rounds -5"), ("--workloads chrun", "--workloads ,")
        others = ("--timeout 0", "--timeout nan", "--quck", "extra", "--quick --output x", "--render x --quick", "--brpc /no/such")
        for arguments in (*rounds, *workloads, *others):
            with self.assertRaises(WrongUsage, msg=arguments) as caught:
                cli.parse(arguments.split())
            self.assertNotIn("\n", str(caught.exception))
