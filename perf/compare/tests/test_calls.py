from __future__ import annotations

import contextlib
import io
import os
import re
import stat
import sys
import tempfile
import unittest
import xml.dom.minidom
from pathlib import Path

from .. import calls, cli, plots
from ..metrics import Spread
from ..runners import Paths
from ..system import Failure, WrongUsage

MADE_UP = '{"host": "Made %s", "calls": 1000, "in_flight": 64, "deadline_s": 10, "rounds": [%s]}'


def blocks(own: float, ours: float) -> str:
    """A round whose blocks take `own` and `ours` times as long as the first. Their CPU increases twice as much."""
    return str([[round(factor * 1e6), round((2 * factor - 1) * 2e6)] for factor in (1, own, ours)])


ROUNDS = ", ".join(blocks(1.1 + noise, 1.005 + noise) for noise in (-0.001, 0, 0.001) for _ in range(9))


class Folders(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.paths = Paths(Path(folder.name), Path(folder.name) / "build", Path(folder.name) / "build" / "calls")
        self.page = self.paths.root / "docs" / "performance.md"
        self.page.parent.mkdir()
        self.page.write_text(f"before\n{calls.BEGIN}\nold\n{calls.END}\nafter\n", encoding="utf-8")

    def program(self, name: str, code: str) -> None:
        path = self.paths.cpp / "perf" / "calls" / f"{name}_calls"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!{sys.executable}\n{code}\n", encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def run_calls(self, rounds: int | None = None, quick: bool = False) -> str:
        out, said = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
            self.assertEqual(calls.run(self.paths, rounds, quick), 0)
        return said.getvalue()

    def expect_plot(self, folder: Path, *texts: str) -> None:
        if not plots.available():
            return
        drawn = folder / "performance" / "calls.svg"
        xml.dom.minidom.parse(str(drawn))
        for text in ("The cost of a deadline in a call", *texts):
            self.assertIn(text, drawn.read_text(encoding="utf-8"))


class CallsTest(Folders):
    def test_a_run_writes_table_and_plot_between_the_markers(self) -> None:
        for name in calls.PROGRAMS:
            self.program(name, f"print('''{MADE_UP % (name, ROUNDS)}''')")
        self.run_calls()
        text = self.page.read_text(encoding="utf-8")
        self.assertRegex(text, rf"(?s)^before\n{calls.BEGIN}\n\n.*\n\n{calls.END}\nafter\n$")
        self.assertNotIn("old", text)
        for part in ("over 27 rounds", "Made kj | 1,000,000 | 2.00 | 9.1 % (9.0 to 9.2) | 0.5 % (0.4 to 0.6) | 20.0 % (19.8 to 20.2)"):
            self.assertIn(part, text)
        self.assertEqual(text.count("calls/s reached, CPU reached |"), 3)
        self.assertEqual("](performance/calls.svg)" in text, plots.available())
        self.assertFalse([line for line in text.splitlines() if len(line) > 120 and not line.startswith("|")])
        self.expect_plot(self.page.parent, "Made grpc", "ours 0.5 %", "goal")

    def test_a_quick_run_makes_few_calls_and_publishes_nothing(self) -> None:
        for name in calls.PROGRAMS:
            self.program(name, f"import sys; assert sys.argv[1:] == ['--rounds', '7', '--calls', '100']; print('''{MADE_UP % (name, ROUNDS)}''')")
        before = self.page.read_text(encoding="utf-8")
        self.run_calls(7, True)
        self.assertEqual(self.page.read_text(encoding="utf-8"), before)

    def test_a_page_is_published_only_by_a_full_run_of_all_hosts(self) -> None:
        before = self.page.read_text(encoding="utf-8")
        self.program("kj", f"print('''{MADE_UP % ('kj', ROUNDS)}''')")
        self.assertRegex(self.run_calls(), "left out: grpc: .*\nkj: 500 rounds\nleft out: asio: ")
        self.assertEqual(self.page.read_text(encoding="utf-8"), before)
        self.assertIn("Made kj", (self.paths.kept / "calls.md").read_text(encoding="utf-8"))

    def test_goals(self) -> None:
        for ours, own, said in ((1.005, 1.1, "calls/s reached, CPU reached"), (1.2, 1.1, "calls/s missed, CPU missed")):
            host = calls.parse(MADE_UP % ("x", ", ".join([blocks(own, ours)] * 20)))
            self.assertEqual(calls._table([host]).rows[0][-1], said)
        noisy = ", ".join(blocks(1.1, ours) for ours in (0.9, 1.2) for _ in range(9))
        self.assertEqual(calls._table([calls.parse(MADE_UP % ("x", noisy))]).rows[0][-1], "calls/s open, CPU open")

    def test_the_interval_comes_from_the_order(self) -> None:
        self.assertEqual(calls.interval([3, 1, 2]), Spread(2, 1, 3))
        self.assertEqual(calls.interval(range(100)), Spread(49.5, 39, 60))

    def test_a_program_that_fails_or_prints_something_else_is_an_error(self) -> None:
        broken = MADE_UP % ("x", "[[1, 2], [3, 4]]")
        for code, message in (
            ("import sys; sys.exit('kj_calls: a request failed')", "^kj_calls: kj_calls: a request failed$"),
            ("print('hello')", "printed something else: 0 objects"),
            ("print('{\"host\": 1}')", "printed something else"),
            (f"print('''{broken}''')", "not three blocks"),
            (f"print('''{MADE_UP % ('x', '')}''')", "not three blocks"),
        ):
            self.program("kj", code)
            with self.assertRaisesRegex(Failure, message):
                self.run_calls()

    def test_without_a_program_there_is_one_error(self) -> None:
        with self.assertRaisesRegex(Failure, "^no program of perf/calls was built$"):
            self.run_calls()


class OptionsTest(unittest.TestCase):
    def test_wrong_arguments_give_one_line(self) -> None:
        for more in ("--peers netty", "--workloads churn", "--resume", "--render x", "--list", "--timeout 5", "--rounds 4", "--rounds x", "x"):
            with self.assertRaises(WrongUsage, msg=more) as caught:
                cli.parse(["--calls", *more.split()])
            self.assertNotIn("\n", str(caught.exception))
            self.assertIn(more.split()[0], str(caught.exception))

    def test_needs(self) -> None:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            self.assertEqual(cli.main(["--needs", "--calls", "--quick"]), 0)
        self.assertEqual(out.getvalue(), "calls plots\n")


@unittest.skipUnless("PROGRAMS" in os.environ, "needs the programs of perf/calls")
class ProgramsTest(Folders):
    def test_each_program_makes_calls_of_each_kind(self) -> None:
        self.paths = Paths(self.paths.root, self.paths.build, Path(os.environ["PROGRAMS"]))
        self.run_calls(2, True)
        text = (self.paths.kept / "calls.md").read_text(encoding="utf-8")
        self.assertIn("A quick run", text)
        built = [name for name in calls.PROGRAMS if (self.paths.cpp / "perf" / "calls" / f"{name}_calls").exists()]
        self.assertTrue(built)
        self.assertEqual(len(re.findall(r"calls/s (reached|missed|open), CPU (reached|missed|open) \|", text)), len(built))
        self.expect_plot(self.paths.kept)
