from __future__ import annotations

import dataclasses
import tempfile
import unittest
from pathlib import Path

from .. import plots, report, results
from ..plan import NETTY, OURS, QUICK, sections
from ..results import FAILED
from ..summary import Summary, differences
from ..system import Failure
from . import made_up


class TableTest(unittest.TestCase):
    def test_text_and_markdown(self) -> None:
        table = report.Table(["", "a"], [["one", "1"], ["hashed_wheel_timer", "12"]])
        self.assertEqual([table.mark("x"), table.mark("y"), table.mark("x")], ["¹", "²", "¹"])
        lines = ["                       a", "  one                  1", "  hashed_wheel_timer  12", "  ¹ x", "  ² y"]
        self.assertEqual(table.text().splitlines(), lines)
        rows = ["|  | a |", "| -- | -: |", "| one | 1 |", "| **hashed_wheel_timer** | **12** |", "", "¹ x<br> ² y"]
        self.assertEqual(table.markdown().splitlines(), rows)


class ReportTest(unittest.TestCase):
    def test_page(self) -> None:
        links = {"": "performance/cost.svg", "late": "performance/late.svg"}
        text = report.page(Summary(made_up.results()), links)
        machine = ("Some CPU, 2 cores of a virtual machine", "Commit 0123456789", "Medians of 5")
        runners = ("Netty 4.2.0", "Left out: Kafka, needs java", "no cancel across threads", "in the loop's own thread")
        for part in (*machine, *runners, "](performance/cost.svg)", "![Late](performance/late.svg)", "4.0×"):
            self.assertIn(part, text)
        for block in text.split("\n\n"):
            rows = [line for line in block.splitlines() if line.startswith("|")]
            self.assertLessEqual(len({row.count("|") for row in rows}), 1, block)
            self.assertFalse([line for line in block.splitlines() if len(line) > 120 and line not in rows])

    def test_terminal(self) -> None:
        text = report.terminal(Summary(made_up.results()))
        self.assertIn("4.0× (4.0)", text)
        self.assertIn("no cancel across threads", text)
        self.assertIn("AGAINST THE TARGETS", text)
        self.assertNotIn("**", text)

    def test_unequal_work_is_loud(self) -> None:
        made = made_up.results()
        made_up.changed(made, NETTY, 1, cancelled=5)
        made.unequal = differences(made)
        self.assertIn("NOT EQUAL WORK: these figures", report.terminal(Summary(made)))
        self.assertIn("NOT EQUAL WORK in 1 round", report.page(Summary(made), {}))

    def test_failures_are_shown(self) -> None:
        made = made_up.results(sections(QUICK, ["expire"]))
        failed = {"status": FAILED, "result": None, "message": "exit status 3: boom"}
        made.runs = [dataclasses.replace(run, **failed) if run.runner == NETTY else run for run in made.runs]
        self.assertIn("failed in 5 rounds: exit status 3: boom", report.terminal(Summary(made)))

    def test_nothing_measured_yet(self) -> None:
        made = made_up.results()
        made.runs, made.finished = [], False
        self.assertIn("not complete", report.terminal(Summary(made)))
        report.page(Summary(made), {})


class FilesTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "new" / "x"

    def test_a_stored_run_gives_the_same_report(self) -> None:
        made = made_up.results()
        made_up.changed(made, NETTY, 1, cancelled=5)
        made.unequal = differences(made)
        failed = {"status": FAILED, "result": None, "message": "exit status 3"}
        made.runs[-1] = dataclasses.replace(made.runs[-1], **failed)
        results.save(made, self.path)
        loaded = results.load(self.path)
        for report_of in (report.terminal, lambda summary: report.page(summary, {})):
            self.assertEqual(report_of(Summary(loaded)), report_of(Summary(made)))
        config = next(config for section in made.plan for config in section.configs if config.workload == "late")
        self.assertEqual(Summary(loaded).curve(NETTY, config), Summary(made).curve(NETTY, config))

    def test_the_page_shows_the_stored_run(self) -> None:
        root = Path(__file__).resolve().parents[3]
        stored = max((root / "perf" / "results").glob("*.json"))
        plots_of = {"": "cost", "pending": "growth", "late": "late"}
        links = {key: f"performance/{name}.svg" for key, name in plots_of.items()}
        text = report.page(Summary(results.load(stored)), links)
        self.assertIn(text, (root / "docs" / "performance.md").read_text(encoding="utf-8"))

    def test_a_stored_run_is_stored_the_same_way_again(self) -> None:
        results.save(made_up.results(), self.path)
        text = self.path.read_text(encoding="utf-8")
        results.save(results.load(self.path), self.path)
        self.assertEqual(self.path.read_text(encoding="utf-8"), text)
        self.assertIn('\n  {"runner":', text)

    def test_other_files_are_refused(self) -> None:
        self.path.parent.mkdir()
        for text in ("", "[]", "{}", '{"format": 1}', '{"format": 2}'):
            self.path.write_text(text, encoding="utf-8")
            with self.assertRaises(Failure):
                results.load(self.path)

    def test_the_rest_of_the_page_stays(self) -> None:
        report.update_page(self.path, "table")
        made = self.path.read_text(encoding="utf-8")
        self.assertEqual(made, f"{report.BEGIN}\n\ntable\n\n{report.END}\n")
        self.path.write_text(f"# Über\n{made}the end", encoding="utf-8")
        report.update_page(self.path, "new")
        self.assertEqual(self.path.read_text(encoding="utf-8"), f"# Über\n{made.replace('table', 'new')}the end")

    def test_a_page_without_markers_is_left_alone(self) -> None:
        self.path.parent.mkdir()
        for text in ("none", report.END + report.BEGIN, report.BEGIN * 2 + report.END):
            self.path.write_text(text, encoding="utf-8")
            with self.assertRaises(Failure):
                report.update_page(self.path, "table")
            self.assertEqual(self.path.read_text(encoding="utf-8"), text)


@unittest.skipUnless(plots.available(), "needs matplotlib")
class PlotsTest(unittest.TestCase):
    def draw(self, made: results.Results) -> dict[str, bytes]:
        with tempfile.TemporaryDirectory() as folder:
            drawn = plots.draw_all(Summary(made), Path(folder))
            return {key: path.read_bytes() for key, path in drawn.items()}

    def test_same_results_same_files(self) -> None:
        drawn = self.draw(made_up.results())
        self.assertEqual(set(drawn), {"", "pending", "late"})
        self.assertEqual(drawn, self.draw(made_up.results()))
        for text in drawn.values():
            self.assertIn(b">hashed_wheel_timer", text)  # text as text

    def test_bars_are_sorted_on_a_logarithmic_axis_with_labels(self) -> None:
        figure = plots._cost(Summary(made_up.results()))
        self.assertGreater(len(figure.axes), 4)
        for axes in figure.axes:
            names = [label.get_text() for label in axes.get_yticklabels()]
            by_cost = [OURS, "libuv", "brpc", "Netty"]
            unsupported = [OURS, "brpc", "Netty", "libuv"]
            self.assertIn(names, ([], by_cost, unsupported))  # [] in a place without bars
            if not names:
                continue
            self.assertEqual(names, unsupported if "2 threads" in axes.get_title() or "pair" in axes.get_title() else by_cost)
            self.assertEqual(axes.get_xscale(), "log")
            left, right = axes.get_xlim()
            self.assertGreaterEqual(len([tick for tick in axes.get_xticks() if left <= tick <= right]), 2, axes.get_title())

    def test_a_cost_of_zero_can_be_drawn(self) -> None:
        made = made_up.results(sections(QUICK, ["far"]))
        for number in range(1, 6):
            made_up.changed(made, OURS, number, cpu_ms_per_s=0.0)
        self.assertIn(b">0<", self.draw(made)[""])

    def test_axes_of_lines_have_titles(self) -> None:
        figure = plots._growth(Summary(made_up.results()))
        self.assertEqual(figure.axes[0].get_ylabel(), "CPU ns per cancel + schedule")
        titles = {axes.get_xlabel() for axes in figure.axes}
        self.assertEqual(titles, {"threads, logarithmic", "pending timeouts of one thread, logarithmic"})

    def test_early_tasks_and_very_late_ones_can_be_drawn(self) -> None:
        for shift, factor in ((-20_000.0, 1.0), (0.0, 100.0)):
            made = made_up.results(sections(QUICK, ["late"]), rounds=1)
            for run in made.runs:
                assert run.result
                run.result["late_us"] = [value * factor + shift for value in run.result["late_us"]]
            self.assertEqual(set(self.draw(made)), {"late"})

    def test_nothing_measured_nothing_drawn(self) -> None:
        made = made_up.results()
        made.runs = []
        self.assertEqual(self.draw(made), {})
