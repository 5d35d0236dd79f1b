from __future__ import annotations

import dataclasses
import tempfile
import unittest
from pathlib import Path

from .. import checks, grid, page, plots, report, results
from ..errors import Failure
from ..plan import NETTY, QUICK, sections
from ..results import FAILED
from ..summary import Summary
from . import made_up


class GridTest(unittest.TestCase):
    table = grid.Grid(["", "a"], [["one", "1"], ["two | three", "12"]])

    def test_text(self) -> None:
        self.assertEqual(grid.text(self.table, ""), "              a\none           1\ntwo | three  12")

    def test_markdown(self) -> None:
        lines = grid.markdown(self.table).splitlines()
        self.assertEqual(lines[1], "| ------------ | ---: |")
        self.assertEqual(lines[3], "| two \\| three |   12 |")

    def test_notes_are_there_once(self) -> None:
        notes = grid.Notes()
        self.assertEqual([notes.mark("x"), notes.mark("y"), notes.mark("x")], ["¹", "²", "¹"])
        self.assertEqual(notes.lines(), ["¹ x", "² y"])


class ReportTest(unittest.TestCase):
    def test_page(self) -> None:
        text = report.page(Summary(made_up.results()), [], {"churn": "performance/churn.svg"})
        for part in (
            "Some CPU, 2 cores of a virtual machine",
            "Commit 0123456789",
            "5 rounds",
            "Netty 4.2.0",
            "Left out: Kafka, needs java",
            "no cancel across threads",
            "in the loop's own thread",
            "![Churn](performance/churn.svg)",
            "4.0× (4.0)",
        ):
            self.assertIn(part, text)

    def test_all_rows_of_a_table_are_equally_long(self) -> None:
        text = report.page(Summary(made_up.results()), [], {})
        for block in text.split("\n\n"):
            rows = [line for line in block.splitlines() if line.startswith("|")]
            self.assertLessEqual(len({row.count("|") for row in rows}), 1, block)

    def test_terminal(self) -> None:
        text = report.terminal(Summary(made_up.results()), [])
        self.assertIn("libuv: no cancel across threads", text)
        self.assertIn("TARGETS", text)
        self.assertNotIn("**", text)

    def test_unequal_work_is_loud(self) -> None:
        made = made_up.results()
        index = next(i for i, run in enumerate(made.runs) if run.runner == NETTY)
        changed = {**(made.runs[index].result or {}), "cancelled": 5}
        made.runs[index] = dataclasses.replace(made.runs[index], result=changed)
        found = checks.differences(made)
        self.assertIn("NOT EQUAL WORK: these figures", report.terminal(Summary(made), found))
        self.assertIn("NOT EQUAL WORK in 1 round", report.page(Summary(made), found, {}))

    def test_failures_are_told(self) -> None:
        made = made_up.results()
        made.runs = [
            dataclasses.replace(run, status=FAILED, result=None, message="exit status 3: boom")
            if run.runner == NETTY and run.config.workload == "expire"
            else run
            for run in made.runs
        ]
        self.assertIn("failed in 5 rounds: exit status 3: boom", report.terminal(Summary(made), []))

    def test_nothing_measured_yet(self) -> None:
        made = made_up.results()
        made.runs, made.finished = [], False
        self.assertIn("not complete", report.terminal(Summary(made), []))
        report.page(Summary(made), [], {})


class FilesTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_results_come_back_as_they_were(self) -> None:
        made = made_up.results()
        results.save(made, self.folder / "new" / "x.json")
        self.assertEqual(results.load(self.folder / "new" / "x.json"), made)

    def test_other_files_are_refused(self) -> None:
        for text in ("", "[]", "{}", '{"format": 2}', '{"format": 1}'):
            (self.folder / "x.json").write_text(text, encoding="utf-8")
            with self.assertRaises(Failure):
                results.load(self.folder / "x.json")

    def test_page_is_made(self) -> None:
        page.update(self.folder / "p.md", "table")
        self.assertEqual((self.folder / "p.md").read_text(encoding="utf-8"), f"{page.BEGIN}\n\ntable\n\n{page.END}\n")

    def test_the_rest_of_the_page_stays(self) -> None:
        path = self.folder / "p.md"
        path.write_bytes(f"# Über\r\n{page.BEGIN}old{page.END} end".encode())
        page.update(path, "table")
        page.update(path, "new")
        self.assertEqual(path.read_bytes().decode(), f"# Über\r\n{page.BEGIN}\n\nnew\n\n{page.END} end")

    def test_a_page_without_markers_is_left_alone(self) -> None:
        for text in ("none", page.END + page.BEGIN, page.BEGIN * 2 + page.END):
            path = self.folder / "p.md"
            path.write_text(text, encoding="utf-8")
            with self.assertRaises(Failure):
                page.update(path, "table")
            self.assertEqual(path.read_text(encoding="utf-8"), text)


@unittest.skipUnless(plots.available(), "needs matplotlib")
class PlotsTest(unittest.TestCase):
    def test_same_results_same_files(self) -> None:
        summary = Summary(made_up.results())
        with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
            one = plots.draw_all(summary, Path(first))
            two = plots.draw_all(summary, Path(second))
            self.assertEqual(set(one), {"churn", "threads", "pending", "expire", "memory", "late", "touch"})
            for key, path in one.items():
                self.assertEqual(path.read_bytes(), two[key].read_bytes(), key)
                self.assertNotIn(b"<dc:date>", path.read_bytes())

    def test_early_tasks_and_very_late_ones_can_be_drawn(self) -> None:
        for shift, factor in ((-20_000.0, 1.0), (0.0, 100.0)):
            made = made_up.results(sections(QUICK, ["late"]), rounds=1)
            for run in made.runs:
                assert run.result
                run.result["late_us"] = [value * factor + shift for value in run.result["late_us"]]
            with tempfile.TemporaryDirectory() as folder:
                self.assertEqual(set(plots.draw_all(Summary(made), Path(folder))), {"late"})

    def test_nothing_measured_nothing_drawn(self) -> None:
        made = made_up.results()
        made.runs = []
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(plots.draw_all(Summary(made), Path(folder)), {})

    def test_labels_do_not_overlap(self) -> None:
        from ..plots import style

        for positions in ([], [1.0], [3.0, 3.0, 3.0, 9.0], [0.0, 0.9, 1.8, 2.7], [5.0, 1.0, 1.2]):
            moved = style.apart(positions, 1.0)
            ordered = sorted(moved)
            self.assertTrue(all(b - a > 0.999 for a, b in zip(ordered, ordered[1:])), moved)
            self.assertEqual(
                sorted(range(len(moved)), key=lambda i: moved[i]), sorted(range(len(moved)), key=lambda i: positions[i])
            )


if __name__ == "__main__":
    unittest.main()
