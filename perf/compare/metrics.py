"""The figures: how they are read from what the runners print, how they are shown, and what they have to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable

from .plan import OURS, RING, Config

Result = Mapping[str, Any]
QUANTILES = 1001  # from 0 to 1000 permille


@dataclass(frozen=True)
class Metric:
    title: str
    read: Callable[[Result], float | None]
    compared: bool = True  # whether theirs / ours says anything


def _field(title: str, key: str, scale: float = 1.0, compared: bool = True) -> Metric:
    return Metric(title, lambda result: None if result[key] is None else float(result[key]) * scale, compared)


def _quantile(name: str, permille: int, compared: bool = False) -> Metric:
    return Metric(f"{name} µs", lambda result: float(result["late_us"][permille]), compared)


CPU = "cpu_ns_per_op"
WAKEUPS = _field("wake-ups per s", "wakeups_per_s", compared=False)

# The first one of a workload is the one that is compared and plotted.
METRICS: dict[str, tuple[Metric, ...]] = {
    "churn": (_field("CPU ns per cancel + schedule", CPU),),
    "handoff": (_field("CPU ns per schedule + cancel", CPU),),
    "expire": (_field("CPU ns per timeout", CPU), _field("wall s in all", "wall_ms", 1e-3, compared=False)),
    "touch": (_field("CPU ns per extension", CPU),),
    "memory": (_field("bytes per timeout", "bytes_per_timeout"),),
    "idle": (WAKEUPS, _field("CPU ms per s", "cpu_ms_per_s", compared=False)),
    "far": (_field("CPU ms per s", "cpu_ms_per_s"), WAKEUPS),
    "late": (
        _quantile("p50", 500, compared=True),
        _quantile("p99", 990, compared=True),
        _quantile("p99.9", 999),
        _quantile("max", 1000),
        _field("too early", "early", compared=False),
    ),
}


def main_metric(workload: str) -> Metric:
    return METRICS[workload][0]


CHECKSUMS = ("fired", "fired_sum", "cancelled", "cancelled_sum")
CHECKED_WORKLOADS = ("churn", "handoff", "expire", "touch")


# --- Numbers as they are shown ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spread:
    median: float
    low: float
    high: float


def number(value: float) -> str:
    """Three digits that count; more before the point are kept."""
    if value == 0:
        return "0"
    size = abs(value)
    text = f"{value:,.{0 if size >= 99.95 else 1 if size >= 9.995 else 2}f}"
    return text if float(text.replace(",", "")) != 0 else f"{value:.1g}"


def _factor(value: float) -> str:
    """Two digits that count."""
    if value >= 99.5:
        return f"{float(f'{value:.2g}'):,.0f}"
    return f"{value:,.{0 if value >= 9.95 else 1 if value >= 0.995 else 2}f}"


def ratio(value: Spread) -> str:
    return _factor(value.median) + "×"


def ratio_and_range(value: Spread) -> str:
    ends = dict.fromkeys([_factor(value.low), _factor(value.high)])
    return f"{ratio(value)} ({'–'.join(ends)})"


# --- What this library has to reach -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """Either `at_most` in the unit of the metric, or one part in `parts_of_netty`, or less than every other peer that
    can be used from several threads."""

    workload: str
    text: str
    at_most: float | None = None
    parts_of_netty: float | None = None
    fastest: bool = False
    tick_ms: int | None = None
    place: int = 0  # of the metric
    name: str = ""  # of the metric, where a workload has several
    runner: str = OURS  # whose figure it is

    @property
    def metric(self) -> Metric:
        return METRICS[self.workload][self.place]

    def applies(self, config: Config) -> bool:
        if config.workload != self.workload or self.tick_ms not in (None, config.tick_ms):
            return False
        return config.workload != "churn" or config.pending == RING


TARGETS = (
    Target("churn", "at most 1/2 of Netty's CPU", parts_of_netty=2, tick_ms=1),
    Target("churn", "at most 1/3 of Netty's CPU", parts_of_netty=3, tick_ms=100),
    Target("churn", "less than all others across threads", fastest=True),
    Target("handoff", "at most 1/3 of Netty's CPU", parts_of_netty=3),
    Target("expire", "at most 1/3 of Netty's CPU", parts_of_netty=3),
    Target("memory", "at most 72 bytes", at_most=72),
    Target("idle", "0 wake-ups per s", at_most=0),
    Target("far", "at most 5 ms of CPU per s", at_most=5),
    Target("late", "at most 600 µs", at_most=600, name="p50"),
    Target("late", "at most 1,200 µs", at_most=1200, place=1, name="p99"),
    Target("late", "at most 15 µs", at_most=15, name="p50", runner="ours-10us"),
    Target("late", "at most 60 µs", at_most=60, place=1, name="p99", runner="ours-10us"),
    Target("late", "at most 8 µs", at_most=8, name="p50", runner="ours-1us"),
    Target("late", "at most 40 µs", at_most=40, place=1, name="p99", runner="ours-1us"),
    Target("touch", "at most 1/4 of Netty's CPU", parts_of_netty=4),
)
