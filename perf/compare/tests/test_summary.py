from __future__ import annotations

import dataclasses
import unittest

from .. import checks, formats, targets
from ..metrics import METRICS, main_metric
from ..plan import NETTY, OURS, QUICK, Config, Section, sections
from ..results import FAILED, OK, TIMED_OUT, Run
from ..summary import Spread, Summary, spread
from . import made_up

CHURN = Config("churn", 1, 1, 1000, 200_000)


def run(name: str, number: int, cpu: float, status: str = OK) -> Run:
    return Run(name, CHURN, number, status, 1.0, "", {"cpu_ns_per_op": cpu} if status == OK else None)


def summary_of(*runs: Run) -> Summary:
    results = made_up.results([])
    results.runs = list(runs)
    return Summary(results)


class SpreadTest(unittest.TestCase):
    def test_median_of_odd_and_even(self) -> None:
        self.assertEqual(spread([3.0, 1.0, 2.0]), Spread(2, 1, 3))
        self.assertEqual(spread([1.0, 2.0, 3.0, 10.0]), Spread(2.5, 1, 10))
        self.assertIsNone(spread([]))


class SummaryTest(unittest.TestCase):
    cpu = main_metric("churn")

    def test_ratio_is_taken_round_by_round(self) -> None:
        # The machine was slow in round 2: the ratio of the medians would be 3, that of the rounds is 2.
        summary = summary_of(
            run(OURS, 1, 10),
            run(NETTY, 1, 20),
            run(OURS, 2, 100),
            run(NETTY, 2, 200),
            run(OURS, 3, 10),
            run(NETTY, 3, 30),
        )
        self.assertEqual(summary.ratio(NETTY, CHURN, self.cpu), Spread(2, 2, 3))

    def test_a_round_that_one_did_not_finish_is_not_compared(self) -> None:
        summary = summary_of(run(OURS, 1, 10), run(OURS, 2, 10), run(NETTY, 1, 40), run(NETTY, 2, 0, FAILED))
        self.assertEqual(summary.ratio(NETTY, CHURN, self.cpu), Spread(4, 4, 4))
        self.assertEqual(len(summary.failures(NETTY, CHURN)), 1)

    def test_nothing_is_divided_by_zero(self) -> None:
        self.assertIsNone(summary_of(run(OURS, 1, 0), run(NETTY, 1, 40)).ratio(NETTY, CHURN, self.cpu))

    def test_a_task_before_its_deadline_has_no_ratio(self) -> None:
        self.assertIsNone(summary_of(run(OURS, 1, 10), run(NETTY, 1, -40)).ratio(NETTY, CHURN, self.cpu))

    def test_rounds_with_such_tasks_are_not_left_out(self) -> None:
        summary = summary_of(run(OURS, 1, 10), run(NETTY, 1, -40), run(OURS, 2, 10), run(NETTY, 2, 40))
        self.assertIsNone(summary.ratio(NETTY, CHURN, self.cpu))

    def test_why_there_is_no_figure(self) -> None:
        self.assertEqual(summary_of().why_none(NETTY, CHURN), "not run")
        self.assertEqual(summary_of(run(NETTY, 1, 0, TIMED_OUT)).why_none(NETTY, CHURN), TIMED_OUT)
        two = Config("churn", 2, 1, 1000, 200_000, warmup_at_most=1)
        self.assertEqual(Summary(made_up.results()).why_none("libuv", two), "no cancel across threads")

    def test_a_sweep_shows_only_who_is_asked_into_it(self) -> None:
        results = made_up.results()
        pending = next(section for section in results.plan if section.key == "pending")
        shown = Summary(results).shown(pending, *pending.configs)
        self.assertEqual([runner.name for runner in shown], [OURS, NETTY])

    def test_quantiles(self) -> None:
        result = {"late_us": list(range(1001)), "early": 0}
        self.assertEqual([metric.read(result) for metric in METRICS["late"]], [500, 990, 999, 1000, 0])


class ChecksTest(unittest.TestCase):
    def test_equal_work(self) -> None:
        self.assertEqual(checks.differences(made_up.results()), [])

    def test_who_differs_from_ours_is_named(self) -> None:
        results = made_up.results(sections(QUICK, ["expire"]))
        index = next(i for i, run in enumerate(results.runs) if run.runner == NETTY and run.round == 2)
        changed = {**(results.runs[index].result or {}), "fired": 5}
        results.runs[index] = dataclasses.replace(results.runs[index], result=changed)
        found = checks.differences(results)
        self.assertEqual([(one.runner, one.round, one.detail) for one in found], [(NETTY, 2, "fired 5 instead of 0")])

    def test_without_ours_the_majority_is_right(self) -> None:
        results = made_up.results(sections(QUICK, ["expire"]), rounds=1)
        base = next(run for run in results.runs if run.runner == NETTY)
        odd = dataclasses.replace(base, runner="c", result={**(base.result or {}), "cancelled": 1})
        results.runs = [odd, base, dataclasses.replace(base, runner="b")]
        self.assertEqual([one.runner for one in checks.differences(results)], ["c"])

    def test_sums_beyond_53_bits_are_told_apart(self) -> None:
        results = made_up.results(sections(QUICK, ["expire"]), rounds=1)
        base = next(run for run in results.runs if run.runner == OURS)
        results.runs = [
            dataclasses.replace(base, runner=name, result={**(base.result or {}), "fired_sum": total})
            for name, total in ((OURS, "18446744073709551615"), (NETTY, "18446744073709551614"))
        ]
        self.assertEqual([one.runner for one in checks.differences(results)], [NETTY])


class TargetsTest(unittest.TestCase):
    def verdict(self, summary: Summary, title: str, text: str) -> bool | None:
        found = [v for v in targets.verdicts(summary) if v.title == title and v.target.text == text]
        self.assertEqual(len(found), 1, title)
        return found[0].reached

    def test_against_netty(self) -> None:
        summary = Summary(made_up.results())
        self.assertIs(self.verdict(summary, "churn, 4 threads, tick 1 ms", "at most 1/2 of Netty's CPU"), True)
        self.assertIs(self.verdict(summary, "churn, 1 thread, tick 100 ms", "at most 1/3 of Netty's CPU"), True)

    def test_limits(self) -> None:
        summary = Summary(made_up.results())
        self.assertIs(self.verdict(summary, "memory, 200,000 pending", "at most 72 bytes"), True)
        self.assertIs(self.verdict(summary, "late, tick 1 ms, p50", "at most 600 µs"), True)
        self.assertIs(self.verdict(summary, "idle, tick 100 ms", "0 wake-ups per s"), True)

    def test_just_missed(self) -> None:
        factors = made_up.FACTORS
        try:
            made_up.FACTORS = {**factors, NETTY: 1.99}
            summary = Summary(made_up.results())
            self.assertIs(self.verdict(summary, "churn, 1 thread, tick 1 ms", "at most 1/2 of Netty's CPU"), False)
            self.assertIs(self.verdict(summary, "touch, tick 1 ms", "at most 1/4 of Netty's CPU"), False)
        finally:
            made_up.FACTORS = factors

    def test_without_netty_nothing_is_known(self) -> None:
        results = made_up.results()
        results.runs = [run for run in results.runs if run.runner != NETTY]
        summary = Summary(results)
        self.assertIsNone(self.verdict(summary, "touch, tick 1 ms", "at most 1/4 of Netty's CPU"))

    def test_timers_of_one_loop_are_no_match(self) -> None:
        # libuv is the only other one, and cannot be used across threads.
        found = targets.verdicts(Summary(made_up.results()))
        self.assertFalse([verdict for verdict in found if verdict.target.fastest])

    def test_large_rings_have_no_target(self) -> None:
        config = Config("churn", 1, 1, 10**6, 5)
        section = Section("pending", "", "churn", ())
        self.assertEqual(section.configs, [])
        self.assertFalse(any(target.applies(config) for target in targets.TARGETS))


class FormatsTest(unittest.TestCase):
    def test_numbers(self) -> None:
        values = {0.0: "0", 0.004: "0.004", 1.234: "1.23", 9.999: "10.0", 57.46: "57.5", 99.96: "100", 1234.5: "1,234"}
        for value, text in values.items():
            self.assertEqual(formats.number(value), text)

    def test_ratios(self) -> None:
        self.assertEqual(formats.ratio_and_spread(Spread(4.04, 3.96, 11.2)), "4.0× (4.0–11)")
        self.assertEqual(formats.ratio_and_spread(Spread(0.5, 0.5, 0.5)), "0.50× (0.50)")


if __name__ == "__main__":
    unittest.main()
