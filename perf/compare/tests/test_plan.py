from __future__ import annotations

import unittest
from collections import Counter

from .. import plan
from ..plan import NETTY, OURS, Config

NAMES = [OURS, NETTY, "asio", "tokio"]


class PlanTest(unittest.TestCase):
    def test_each_configuration_runs_once_a_round_for_each_who_takes_part(self) -> None:
        steps = list(plan.steps(plan.sections(plan.FULL), NAMES, 2))
        counts = Counter((step.round, step.config, step.runner) for step in steps)
        self.assertEqual(set(counts.values()), {1})

    def test_only_the_main_configurations_are_for_everyone(self) -> None:
        entries = plan.entries_of(plan.sections(plan.FULL, ["churn"]))
        everyone = [entry.config for entry in entries if entry.everyone]
        self.assertEqual(
            {(config.threads, config.tick_ms, config.pending) for config in everyone},
            {(1, 1, 1000), (2, 1, 1000), (1, 100, 1000), (2, 100, 1000)},
        )
        entry = next(entry for entry in entries if not entry.everyone)
        self.assertEqual(plan.participants(entry, NAMES), [OURS, NETTY])

    def test_sweeps_can_be_for_everyone(self) -> None:
        entries = plan.entries_of(plan.sections(plan.FULL, ["churn"], sweep_everyone=True))
        self.assertTrue(all(entry.everyone for entry in entries))

    def test_full_plan_has_all_that_the_targets_ask_for(self) -> None:
        configs = [entry.config for entry in plan.entries_of(plan.sections(plan.FULL))]
        self.assertEqual({config.workload for config in configs}, set(plan.WORKLOADS))
        churn = [config for config in configs if config.workload == "churn"]
        self.assertEqual({config.threads for config in churn}, {1, 2, 4, 8, 16})
        self.assertEqual({config.pending for config in churn}, {10**3, 10**4, 10**5, 10**6, 10**7})
        self.assertEqual({c.pending for c in configs if c.workload == "memory"}, {2_000_000, 10_000_000})

    def test_arguments(self) -> None:
        config = Config("churn", 2, 100, 1000, 5, warmup_at_most=2)
        self.assertEqual(
            " ".join(config.arguments(3, 7)),
            "churn --threads 2 --tick-ms 100 --count 5 --pending 1000 --rounds 1 --warmup 2 --seed 7 --json",
        )


class OrderTest(unittest.TestCase):
    def test_all_take_part_each_time(self) -> None:
        for size in range(1, 10):
            names = [str(number) for number in range(size)]
            for turn in range(2 * size):
                self.assertEqual(sorted(plan.in_turn(names, turn)), sorted(names))

    def test_each_comes_after_every_other_equally_often(self) -> None:
        for size in range(2, 10):
            names = [str(number) for number in range(size)]
            turns = size if size % 2 == 0 else 2 * size
            pairs: Counter[tuple[str, str]] = Counter()
            for turn in range(turns):
                order = plan.in_turn(names, turn)
                pairs.update(zip(order, order[1:]))
            self.assertEqual(len(pairs), size * (size - 1))
            self.assertEqual(len(set(pairs.values())), 1)

    def test_five_rounds_bring_different_neighbours(self) -> None:
        names = [str(number) for number in range(8)]
        before: dict[str, set[str]] = {name: set() for name in names}
        for turn in range(5):
            order = plan.in_turn(names, turn)
            for first, second in zip(order, order[1:]):
                before[second].add(first)
        self.assertGreaterEqual(min(map(len, before.values())), 4)


class WordsTest(unittest.TestCase):
    def test_labels(self) -> None:
        self.assertEqual(plan.label(Config("churn", 1, 100, 1000, 5)), "churn, 1 thread, tick 100 ms")
        self.assertEqual(plan.label(Config("churn", 2, 1, 10**6, 5)), "churn, 2 threads, tick 1 ms, 1,000,000 pending")
        self.assertEqual(plan.label(Config("late", count=3)), "late, tick 1 ms")


if __name__ == "__main__":
    unittest.main()
