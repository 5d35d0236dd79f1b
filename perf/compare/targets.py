"""What this library has to reach, as data, and whether it does."""

from __future__ import annotations

from dataclasses import dataclass

from .metrics import Metric, metric
from .plan import NETTY, OURS, RING, Config, label
from .summary import Spread, Summary


@dataclass(frozen=True)
class Target:
    """Either `at_most` in the unit of the metric, or one part in `parts_of_netty`, or less than every other peer that
    can be used from several threads."""

    workload: str
    metric: str
    text: str
    at_most: float | None = None
    parts_of_netty: float | None = None
    fastest: bool = False
    tick_ms: int | None = None

    def applies(self, config: Config) -> bool:
        if config.workload != self.workload or self.tick_ms not in (None, config.tick_ms):
            return False
        return config.workload != "churn" or config.pending == RING


TARGETS = (
    Target("churn", "cpu_ns_per_op", "at most 1/2 of Netty's CPU", parts_of_netty=2, tick_ms=1),
    Target("churn", "cpu_ns_per_op", "at most 1/3 of Netty's CPU", parts_of_netty=3, tick_ms=100),
    Target("churn", "cpu_ns_per_op", "less than all others across threads", fastest=True),
    Target("expire", "cpu_ns_per_op", "at most 1/2 of Netty's CPU", parts_of_netty=2),
    Target("memory", "bytes_per_timeout", "at most 72 bytes", at_most=72),
    Target("idle", "wakeups_per_s", "0 wake-ups per s", at_most=0),
    Target("far", "cpu_ms_per_s", "at most 5 ms of CPU per s", at_most=5),
    Target("late", "p50", "at most 600 µs", at_most=600),
    Target("late", "p99", "at most 1,200 µs", at_most=1200),
    Target("touch", "cpu_ns_per_op", "at most 1/4 of Netty's CPU", parts_of_netty=4),
)


@dataclass(frozen=True)
class Verdict:
    target: Target
    config: Config
    metric: Metric
    other: str  # whom ours is compared with
    reached: bool | None  # None: not measured

    @property
    def title(self) -> str:
        # A workload with one main figure needs no name for it.
        return f"{label(self.config)}, {self.metric.key}" if self.config.workload == "late" else label(self.config)


def verdicts(summary: Summary) -> list[Verdict]:
    """One for each target and configuration, in the order of the targets."""
    found = []
    for target in TARGETS:
        seen: list[Config] = []
        for section in summary.results.plan:
            for config in section.configs:
                if target.applies(config) and config not in seen:
                    seen.append(config)
                    found += _judge(summary, target, config)
    return found


def _judge(summary: Summary, target: Target, config: Config) -> list[Verdict]:
    figure = metric(target.workload, target.metric)
    if target.fastest:
        other = _fastest_other(summary, config, figure)
        if other is None:
            return []  # only Netty took part
        return [
            Verdict(target, config, figure, other, _exceeds(summary.ratio(other, config, figure), 1, strictly=True))
        ]
    if target.parts_of_netty is not None:
        reached = _exceeds(summary.ratio(NETTY, config, figure), target.parts_of_netty)
        return [Verdict(target, config, figure, NETTY, reached)]
    ours = summary.value(OURS, config, figure)
    assert target.at_most is not None
    return [Verdict(target, config, figure, NETTY, None if ours is None else ours.median <= target.at_most)]


def _exceeds(ratio: Spread | None, limit: float, strictly: bool = False) -> bool | None:
    if ratio is None:
        return None
    return ratio.median > limit if strictly else ratio.median >= limit


def _fastest_other(summary: Summary, config: Config, figure: Metric) -> str | None:
    values = {}
    for runner in summary.results.runners:
        if runner.name in (OURS, NETTY) or not runner.cross_thread:
            continue
        value = summary.value(runner.name, config, figure)
        if value is not None:
            values[runner.name] = value.median
    return min(values, key=lambda name: values[name]) if values else None
