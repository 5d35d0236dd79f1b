from __future__ import annotations

import json
import unittest
from pathlib import Path

from .. import options
from ..errors import WrongUsage
from ..parsing import BadOutput, parse_description, parse_round
from ..plan import NETTY, OURS, WORKLOADS, Config
from ..runners import Paths, parse_program
from . import made_up

CHURN = Config("churn", 2, 1, 1000, 10)
LATE = Config("late", count=10)


class RoundTest(unittest.TestCase):
    def text(self, config: Config, **changes: object) -> str:
        return json.dumps({**made_up.round_of(config, OURS, 1), **changes})

    def test_lines_of_a_runtime_are_skipped(self) -> None:
        result = parse_round("WARNING: a runtime speaks\n" + self.text(CHURN) + "\n", CHURN)
        self.assertEqual(result["cpu_ns_per_op"], 51)

    def test_unsupported(self) -> None:
        self.assertEqual(parse_round('{"unsupported": "no"}', CHURN)["unsupported"], "no")

    def test_other_work_than_asked_for(self) -> None:
        with self.assertRaisesRegex(BadOutput, "count 9 instead of 10"):
            parse_round(self.text(CHURN, count=9), CHURN)

    def test_bad_output(self) -> None:
        one = self.text(CHURN)
        for text in (
            "",
            "nothing",
            one + "\n" + one,
            "{broken",
            self.text(CHURN, cpu_ns_per_op=None),
            self.text(CHURN, cpu_ns_per_op="fast"),
            self.text(CHURN, cpu_ns_per_op=float("nan")),
            self.text(CHURN, fired_sum=None),
        ):
            with self.assertRaises(BadOutput, msg=text):
                parse_round(text, CHURN)

    def test_quantiles_must_be_complete(self) -> None:
        parse_round(self.text(LATE), LATE)
        with self.assertRaises(BadOutput):
            parse_round(self.text(LATE, late_us=[1, 2, 3]), LATE)

    def test_unknown_wakeups(self) -> None:
        idle = Config("idle", seconds=1)
        self.assertIsNone(parse_round(self.text(idle, wakeups_per_s=None), idle)["wakeups_per_s"])

    def test_description(self) -> None:
        self.assertEqual(parse_description('{"version": "1"}'), {"version": "1", "runtime": "unknown"})
        with self.assertRaises(BadOutput):
            parse_description("usage: ...")


class RunnerFileTest(unittest.TestCase):
    paths = Paths(Path("/project"), Path("/project/build"), Path("/project/build/compare"))

    def parse(self, **more: object) -> object:
        data = {"name": NETTY, "title": "Netty", "run": ["{build}/a", "{cpp}", "{peers}"], "cross_thread": True, **more}
        return parse_program(data, Path("/project/perf/peers/x"), self.paths)

    def test_places(self) -> None:
        program = parse_program(
            {
                "name": "n",
                "title": "N",
                "run": ["{build}/a", "{cpp}", "{peers}"],
                "cross_thread": True,
                "build": ["make", "-C", "{source}"],
                "needs": [{"tool": "no-such-tool", "package": "a-package"}],
            },
            Path("/project/perf/peers/x"),
            self.paths,
        )
        self.assertEqual(program.run, ("/project/build/peers/a", "/project/build/compare", "/project/perf/peers"))
        self.assertEqual(program.build, (("make", "-C", "/project/perf/peers/x"),))
        self.assertEqual(program.missing(), "needs no-such-tool (package a-package)")
        self.assertTrue(program.not_built())

    def test_one_build_command_or_several(self) -> None:
        for build, expected in (([], 0), (["make"], 1), ([["make"], ["make", "install"]], 2)):
            program = parse_program(
                {"name": "n", "title": "N", "run": ["n"], "cross_thread": True, "build": build}, Path("/"), self.paths
            )
            self.assertEqual(len(program.build), expected)


class OptionsTest(unittest.TestCase):
    def test_defaults(self) -> None:
        chosen = options.parse([])
        self.assertEqual((chosen.rounds, chosen.workloads, chosen.whole), (5, list(WORKLOADS), True))

    def test_quick(self) -> None:
        chosen = options.parse(["--quick"])
        self.assertEqual((chosen.rounds, chosen.whole), (1, False))
        self.assertEqual(options.parse(["--quick", "--rounds", "2"]).rounds, 2)

    def test_a_part_is_not_the_whole(self) -> None:
        self.assertFalse(options.parse(["--workloads", "churn"]).whole)
        self.assertFalse(options.parse(["--peers", "netty"]).whole)

    def test_wrong(self) -> None:
        for arguments in (
            ["--rounds", "4"],
            ["--rounds", "x"],
            ["--rounds", "-5"],
            ["--workloads", "chrun"],
            ["--workloads", ","],
            ["--timeout", "0"],
            ["--timeout", "nan"],
            ["--quck"],
            ["extra"],
            ["--quick", "--output", "x"],
            ["--render", "x", "--quick"],
        ):
            with self.assertRaises(WrongUsage, msg=str(arguments)) as caught:
                options.parse(arguments)
            self.assertNotIn("\n", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
