"""The figures: where a runner's result has them, how they are shown, and their targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable

from .plan import BRPC, NETTY, OURS, RING, Config

Result = Mapping[str, Any]
QUANTILES = 1001  # that a runner prints as late_us, from 0 to 1000 permille


@dataclass(frozen=True)
class Metric:
    title: str
    key: str
    scale: float = 1.0
    compared: bool = True  # whether a ratio of two runners is meaningful

    def read(self, result: Result) -> float | None:
        value = result[self.key]
        return None if value is None else float(value) * self.scale


CPU = "cpu_ns_per_op"
WAKEUPS = Metric("wake-ups per s", "wakeups_per_s", compared=False)

# The first metric of a workload is the one that is compared and plotted.
METRICS: dict[str, tuple[Metric, ...]] = {
    "churn": (Metric("CPU ns per cancel + schedule", CPU),),
    "handoff": (Metric("CPU ns per schedule + cancel", CPU),),
    "expire": (Metric("CPU ns per timeout", CPU), Metric("wall s in all", "wall_ms", 1e-3, compared=False)),
    "touch": (Metric("CPU ns per extension", CPU),),
    "memory": (Metric("bytes per timeout", "bytes_per_timeout"),),
    "idle": (WAKEUPS, Metric("CPU ms per s", "cpu_ms_per_s", compared=False)),
    "far": (Metric("CPU ms per s", "cpu_ms_per_s"), WAKEUPS),
    "late": (
        Metric("p50 µs", "p50_us"),
        Metric("p99 µs", "p99_us"),
        Metric("p99.9 µs", "p999_us", compared=False),
        Metric("max µs", "max_us", compared=False),
        Metric("too early", "early", compared=False),
    ),
    "rate": (Metric("MiB kept", "kept_mib"), Metric("CPU ms per s", "cpu_ms_per_s", compared=False)),
}
CURVE = "late_us"  # each whole percentile, for the plot
PERMILLE = {"p50_us": 500, "p99_us": 990, "p999_us": 999, "max_us": 1000}


def with_percentiles(result: Result) -> dict[str, Any]:
    """Replaces the quantiles of `late` by the figures and the curve that the report shows."""
    quantiles = result[CURVE]
    return {**result, **{key: quantiles[permille] for key, permille in PERMILLE.items()}, CURVE: quantiles[::10]}


def main_metric(workload: str) -> Metric:
    return METRICS[workload][0]


CHECKSUMS = ("fired", "fired_sum", "cancelled", "cancelled_sum")
CHECKED_WORKLOADS = ("churn", "handoff", "expire", "touch")


# --- Formatting of numbers --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spread:
    median: float
    low: float
    high: float


def number(value: float) -> str:
    """Three significant digits, or all digits before the point."""
    if value == 0:
        return "0"
    size = abs(value)
    text = f"{value:,.{0 if size >= 99.95 else 1 if size >= 9.995 else 2}f}"
    return text if float(text.replace(",", "")) != 0 else f"{value:.1g}"


def _factor(value: float) -> str:
    """Two significant digits."""
    if value >= 99.5:
        return f"{float(f'{value:.2g}'):,.0f}"
    return f"{value:,.{0 if value >= 9.95 else 1 if value >= 0.995 else 2}f}"


def ratio(value: Spread) -> str:
    return _factor(value.median) + "×"


def _range(value: Spread, text: Callable[[float], str]) -> str:
    return "–".join(dict.fromkeys([text(value.low), text(value.high)]))


def figure_range(value: Spread) -> str:
    return _range(value, number)


def ratio_range(value: Spread) -> str:
    return _range(value, _factor) + "×"


def ratio_and_range(value: Spread) -> str:
    return f"{ratio(value)} ({_range(value, _factor)})"


# --- Targets of this library ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """One of three kinds: `at_most` in the unit of the metric, 1/`parts` of the figure of `other`, or less than every
    other peer that several threads can use. Netty is not among these peers, because it has a stricter target."""

    workload: str
    text: str
    at_most: float | None = None
    parts: float | None = None
    other: str = NETTY
    fastest: bool = False
    tick_ms: int | None = None
    place: int = 0  # of the metric, in METRICS
    name: str = ""  # of the metric, if the workload has several targets
    runner: str = OURS  # the runner that has this target

    @property
    def metric(self) -> Metric:
        return METRICS[self.workload][self.place]

    def applies(self, config: Config) -> bool:
        if config.workload != self.workload or self.tick_ms not in (None, config.tick_ms):
            return False
        return config.workload != "churn" or config.pending == RING


TARGETS = (
    Target("churn", "at most 1/3 of Netty's CPU", parts=3),
    Target("churn", "at most 1/2 of brpc's CPU", parts=2, other=BRPC),
    Target("churn", "less than all others across threads", fastest=True),
    Target("handoff", "at most 1/3 of Netty's CPU", parts=3),
    Target("handoff", "at most 1/2 of brpc's CPU", parts=2, other=BRPC),
    Target("expire", "at most 1/3 of Netty's CPU", parts=3),
    Target("memory", "at most 72 bytes", at_most=72),
    Target("idle", "0 wake-ups per s", at_most=0),
    Target("far", "at most 5 ms of CPU per s", at_most=5),
    Target("late", "at most 600 µs", at_most=600, name="p50"),
    Target("late", "at most 1,200 µs", at_most=1200, place=1, name="p99"),
    Target("late", "at most 15 µs", at_most=15, name="p50", runner="ours-10us"),
    Target("late", "at most 60 µs", at_most=60, place=1, name="p99", runner="ours-10us"),
    Target("late", "at most 8 µs", at_most=8, name="p50", runner="ours-1us"),
    Target("late", "at most 40 µs", at_most=40, place=1, name="p99", runner="ours-1us"),
    Target("touch", "at most 1/4 of Netty's CPU", parts=4),
)
