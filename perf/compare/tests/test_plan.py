from __future__ import annotations

import unittest
from collections import Counter

from .. import plan
from ..metrics import TARGETS
from ..plan import BRPC, NETTY, OURS, Config

NAMES = [OURS, NETTY, BRPC, "asio", "tokio"]


class PlanTest(unittest.TestCase):
    def test_each_runner_runs_each_configuration_once_a_round(self) -> None:
        steps = list(plan.steps(plan.sections(plan.FULL), NAMES, 2))
        counts = Counter((step.round, step.config, step.runner) for step in steps)
        self.assertEqual(set(counts.values()), {1})

    def test_a_runner_runs_only_its_workloads(self) -> None:
        shown = plan.sections(plan.FULL, ["handoff", "expire"])
        steps = list(plan.steps(shown, NAMES, 1, {"tokio": ("handoff",)}))
        self.assertEqual({step.config.workload for step in steps if step.runner == "tokio"}, {"handoff"})
        self.assertEqual({step.config.workload for step in steps if step.runner == "asio"}, {"handoff", "expire"})

    def test_sweeps_are_only_for_netty_and_brpc_by_default(self) -> None:
        entries = plan.entries_of(plan.sections(plan.FULL, ["churn"]))
        everyone = {(one.config.threads, one.config.tick_ms, one.config.pending) for one in entries if one.everyone}
        self.assertEqual(everyone, {(1, 1, 1000), (2, 1, 1000), (1, 100, 1000), (2, 100, 1000)})
        entry = next(entry for entry in entries if not entry.everyone)
        self.assertEqual(entry.participants(NAMES), [OURS, NETTY, BRPC])
        entries = plan.entries_of(plan.sections(plan.FULL, ["churn"], sweep_everyone=True))
        self.assertTrue(all(entry.everyone for entry in entries))

    def test_the_full_plan_covers_the_targets(self) -> None:
        configs = [entry.config for entry in plan.entries_of(plan.sections(plan.FULL))]
        for target in TARGETS:
            self.assertTrue(any(target.applies(config) for config in configs), target.text)
        self.assertEqual({config.workload for config in configs}, set(plan.WORKLOADS))
        churn = [config for config in configs if config.workload == "churn"]
        self.assertEqual({config.threads for config in churn}, {1, 2, 4, 8, 16})
        self.assertEqual({config.pending for config in churn}, {10**3, 10**4, 10**5, 10**6, 10**7})
        handoff = {(config.threads, config.pending) for config in configs if config.workload == "handoff"}
        self.assertEqual(handoff, {(pairs, pending) for pairs in (1, 2, 4) for pending in (1_000, 100_000)})
        self.assertEqual({c.due_ms for c in configs if c.workload == "rate"}, {0, 10})
        self.assertEqual({c.pending for c in configs if c.workload == "memory"}, {2_000_000, 10_000_000})

    def test_arguments(self) -> None:
        config = Config("churn", 2, 100, 1000, 5, warmup_at_most=2)
        expected = "churn --threads 2 --tick-ms 100 --count 5 --pending 1000 --warmup 2 --seed 7"
        self.assertEqual(" ".join(config.arguments(3, 7)), expected)


class OrderTest(unittest.TestCase):
    def test_each_runner_follows_each_other_equally_often(self) -> None:
        for size in range(1, 10):
            names = [str(number) for number in range(size)]
            turns = size if size % 2 == 0 else 2 * size
            pairs: Counter[tuple[str, str]] = Counter()
            for turn in range(turns):
                order = plan.in_turn(names, turn)
                self.assertEqual(sorted(order), names)
                pairs.update(zip(order, order[1:]))
            self.assertEqual(len(pairs), size * (size - 1))
            self.assertLessEqual(len(set(pairs.values())), 1)

    def test_neighbours_differ_in_five_rounds(self) -> None:
        orders = [plan.in_turn("abcdefgh", turn) for turn in range(5)]
        pairs = {pair for order in orders for pair in zip(order, order[1:])}
        self.assertGreaterEqual(min(Counter(second for _, second in pairs).values()), 4)

    def test_labels(self) -> None:
        self.assertEqual(plan.label(Config("churn", 1, 100, 1000, 5)), "churn, 1 thread, tick 100 ms")
        self.assertEqual(plan.label(Config("churn", 2, 1, 10**6, 5)), "churn, 2 threads, tick 1 ms, 1,000,000 pending")
        self.assertEqual(plan.label(Config("handoff", 2, 1, 1000, 5)), "handoff, 2 pairs, 1,000 in flight")
        self.assertEqual(plan.label(Config("rate", count=3, due_ms=0)), "rate, no other due")
        self.assertEqual(plan.label(Config("rate", count=3, due_ms=10)), "rate, one due each 10 ms")
        self.assertEqual(plan.label(Config("late", count=3)), "late, tick 1 ms")
