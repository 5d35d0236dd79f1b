from __future__ import annotations

import dataclasses
import unittest
from unittest import mock

from .. import metrics
from ..metrics import METRICS, TARGETS, Spread, main_metric
from ..plan import BRPC, NETTY, OURS, QUICK, Config, sections
from ..results import FAILED, OK, TIMED_OUT, Difference, Results, Run
from ..summary import Summary, differences, spread, still_known, verdicts
from . import made_up

CHURN = Config("churn", 1, 1, 1000, 200_000)


def run(name: str, number: int, cpu: float, status: str = OK) -> Run:
    return Run(name, CHURN, number, status, "", {"cpu_ns_per_op": cpu} if status == OK else None)


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

    def ratio(self, ours: list[float], netty: list[float]) -> Spread | None:
        """Returns the ratio of these figures, one for each round."""
        both = ((OURS, ours), (NETTY, netty))
        runs = [run(name, number, cpu) for name, figures in both for number, cpu in enumerate(figures, 1)]
        return summary_of(*runs).ratio(NETTY, CHURN, self.cpu)

    def test_ratio_of_medians_and_range_of_rounds(self) -> None:
        # Both were slow in round 2, so it does not change the range.
        self.assertEqual(self.ratio([10, 100, 10], [20, 200, 30]), Spread(3, 2, 3))

    def test_nothing_is_divided_by_zero(self) -> None:
        self.assertIsNone(self.ratio([0], [40]))
        self.assertIsNone(self.ratio([0, 0, 10], [40, 40, 40]))

    def test_early_tasks_have_no_ratio(self) -> None:
        # A negative figure is a lateness: the tasks ran before their deadlines. The metric does not matter here.
        self.assertIsNone(self.ratio([10], [-40]))
        self.assertIsNone(self.ratio([10, 10], [-40, 40]))

    def test_an_unfinished_round_is_not_compared(self) -> None:
        summary = summary_of(run(OURS, 1, 10), run(OURS, 2, 10), run(NETTY, 1, 40), run(NETTY, 2, 0, FAILED))
        self.assertEqual(summary.ratio(NETTY, CHURN, self.cpu), Spread(4, 4, 4))
        self.assertEqual(len(summary.failures(NETTY, CHURN)), 1)

    def test_reasons_for_missing_figures(self) -> None:
        self.assertEqual(summary_of().why_none(NETTY, CHURN), "not run")
        self.assertEqual(summary_of(run(NETTY, 1, 0, TIMED_OUT)).why_none(NETTY, CHURN), TIMED_OUT)
        two = Config("churn", 2, 1, 1000, 200_000, warmup_at_most=1)
        self.assertEqual(Summary(made_up.results()).why_none("libuv", two), "no cancel across threads")
        handoff = Config("handoff", 1, 1, 1000, 200_000)
        self.assertEqual(Summary(made_up.results()).why_none("libuv", handoff), "no cancel across threads")

    def test_a_sweep_shows_only_its_runners(self) -> None:
        results = made_up.results()
        pending = next(section for section in results.plan if section.key == "pending")
        shown = Summary(results).shown(pending, *pending.configs)
        self.assertEqual([runner.name for runner in shown], [OURS, NETTY, BRPC])

    def test_quantiles(self) -> None:
        result = metrics.with_percentiles({"late_us": list(range(1001)), "early": 0})
        self.assertEqual([metric.read(result) for metric in METRICS["late"]], [500, 990, 999, 1000, 0])
        self.assertEqual(result["late_us"], list(range(0, 1001, 10)))


class ChecksTest(unittest.TestCase):
    def test_equal_work(self) -> None:
        self.assertEqual(differences(made_up.results()), [])

    def test_a_difference_from_ours_is_named(self) -> None:
        results = made_up.results(sections(QUICK, ["expire"]))
        made_up.changed(results, NETTY, 2, fired=5)
        found = [(one.runner, one.round, one.detail) for one in differences(results)]
        self.assertEqual(found, [(NETTY, 2, "fired 5 instead of 0")])

    def test_without_ours_the_majority_counts(self) -> None:
        results = made_up.results(sections(QUICK, ["expire"]), rounds=1)
        base = next(run for run in results.runs if run.runner == NETTY)
        odd = dataclasses.replace(base, runner="c", result={**(base.result or {}), "cancelled": 1})
        results.runs = [odd, base, dataclasses.replace(base, runner="b")]
        self.assertEqual([one.runner for one in differences(results)], ["c"])

    def test_runs_from_a_file_have_no_sums_to_compare(self) -> None:
        results = made_up.results(sections(QUICK, ["expire"]), rounds=1)
        first = results.runs[0]
        kept = {key: value for key, value in (first.result or {}).items() if key not in metrics.CHECKSUMS}
        results.runs[0] = dataclasses.replace(first, result=kept)
        self.assertEqual(differences(results), [])

    def test_a_difference_is_forgotten_when_its_round_is_measured_again(self) -> None:
        results = made_up.results(sections(QUICK, ["expire"]), rounds=2)
        config = results.runs[0].config
        known = [Difference(NETTY, config, number, "fired 1 instead of 2") for number in (1, 2)]
        loaded = [run for run in results.runs if run.round == 2]
        for run in loaded:
            kept = {key: value for key, value in (run.result or {}).items() if key not in metrics.CHECKSUMS}
            results.runs[results.runs.index(run)] = dataclasses.replace(run, result=kept)
        self.assertEqual(still_known(known, results), known[1:])

    def test_sums_of_64_bits_are_compared(self) -> None:
        results = made_up.results(sections(QUICK, ["expire"]), rounds=1)
        for name, total in ((OURS, 2**64 - 1), (NETTY, 2**64 - 2), (BRPC, 2**64 - 1), ("libuv", 2**64 - 1)):
            made_up.changed(results, name, 1, fired_sum=str(total))
        self.assertEqual([one.runner for one in differences(results)], [NETTY])


class TargetsTest(unittest.TestCase):
    def judged(self, results: Results, title: str, text: str, reached: bool | None) -> None:
        found = [v.reached for v in verdicts(Summary(results)) if v.title == title and v.target.text == text]
        self.assertEqual(found, [reached], title)

    def test_reached(self) -> None:
        for title, text in (
            ("churn, 4 threads, tick 1 ms", "at most 1/3 of Netty's CPU"),
            ("churn, 2 threads, tick 1 ms", "at most 1/2 of brpc's CPU"),
            ("handoff, 4 pairs, 1,000 in flight", "at most 1/2 of brpc's CPU"),
            ("churn, 1 thread, tick 100 ms", "at most 1/3 of Netty's CPU"),
            ("handoff, 4 pairs, 100,000 in flight", "at most 1/3 of Netty's CPU"),
            ("expire, 200,000 timeouts", "at most 1/3 of Netty's CPU"),
            ("memory, 200,000 pending", "at most 72 bytes"),
            ("late, tick 1 ms, p50", "at most 600 µs"),
            ("late, tick 10 µs, p50", "at most 15 µs"),
            ("late, tick 1 µs, p99", "at most 40 µs"),
            ("idle, tick 100 ms", "0 wake-ups per s"),
        ):
            self.judged(made_up.results(), title, text, True)

    def test_just_missed(self) -> None:
        with mock.patch.dict(made_up.FACTORS, {NETTY: 2.99, BRPC: 1.99}):
            results = made_up.results()
        self.judged(results, "churn, 1 thread, tick 1 ms", "at most 1/3 of Netty's CPU", False)
        self.judged(results, "churn, 1 thread, tick 1 ms", "at most 1/2 of brpc's CPU", False)
        self.judged(results, "handoff, 1 pair, 1,000 in flight", "at most 1/2 of brpc's CPU", False)
        self.judged(results, "touch, tick 1 ms", "at most 1/4 of Netty's CPU", False)
        self.judged(results, "handoff, 1 pair, 1,000 in flight", "at most 1/3 of Netty's CPU", False)
        self.judged(results, "expire, 200,000 timeouts", "at most 1/3 of Netty's CPU", False)

    def test_no_verdict_without_netty(self) -> None:
        results = made_up.results()
        results.runs = [run for run in results.runs if run.runner != NETTY]
        self.judged(results, "touch, tick 1 ms", "at most 1/4 of Netty's CPU", None)

    def test_no_target_against_a_peer_that_was_left_out(self) -> None:
        results = made_up.results()
        results.runners = [runner for runner in results.runners if runner.name != BRPC]
        self.assertFalse([verdict for verdict in verdicts(Summary(results)) if verdict.target.other == BRPC])

    def test_timers_of_one_loop_are_not_compared(self) -> None:
        # Besides Netty, which is never the fastest other one, and without brpc, only libuv is left. Threads cannot
        # share it.
        results = made_up.results()
        results.runners = [runner for runner in results.runners if runner.name != BRPC]
        found = verdicts(Summary(results))
        self.assertFalse([verdict for verdict in found if verdict.target.fastest])

    def test_large_rings_have_no_target(self) -> None:
        config = Config("churn", 1, 1, 10**6, 5)
        self.assertFalse(any(target.applies(config) for target in TARGETS))


class FormatsTest(unittest.TestCase):
    def test_numbers(self) -> None:
        values = {0.0: "0", 0.004: "0.004", 1.234: "1.23", 9.999: "10.0", 57.46: "57.5", 99.96: "100", 1234.5: "1,234"}
        for value, text in values.items():
            self.assertEqual(metrics.number(value), text)

    def test_ratios(self) -> None:
        self.assertEqual(metrics.ratio_and_range(Spread(4.04, 3.96, 11.2)), "4.0× (4.0–11)")
        self.assertEqual(metrics.ratio_and_range(Spread(0.5, 0.5, 0.5)), "0.50× (0.50)")
        self.assertEqual(metrics.ratio_and_range(Spread(1412, 99.4, 99.6)), "1,400× (99–100)")
