"""The figures that are read from what the runners print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable

Result = Mapping[str, Any]
QUANTILES = 1001  # from 0 to 1000 permille


@dataclass(frozen=True)
class Metric:
    key: str
    title: str
    read: Callable[[Result], float | None]
    compared: bool = True  # whether theirs / ours says anything


def _field(key: str, scale: float = 1.0) -> Callable[[Result], float | None]:
    def read(result: Result) -> float | None:
        value = result.get(key)
        return None if value is None else float(value) * scale

    return read


def _quantile(permille: int) -> Callable[[Result], float | None]:
    return lambda result: float(result["late_us"][permille])


def _operations(what: str, wall: Metric) -> tuple[Metric, ...]:
    return (Metric("cpu_ns_per_op", f"CPU ns per {what}", _field("cpu_ns_per_op")), wall)


WAKEUPS = Metric("wakeups_per_s", "wake-ups per s", _field("wakeups_per_s"), compared=False)
CPU_SHARE = Metric("cpu_ms_per_s", "CPU ms per s", _field("cpu_ms_per_s"))

# The first one of a workload is the one that is compared and plotted.
METRICS: dict[str, tuple[Metric, ...]] = {
    "churn": _operations(
        "cancel + schedule", Metric("wall_ns_per_op", "wall ns", _field("wall_ns_per_op"), compared=False)
    ),
    "expire": _operations("timeout", Metric("wall_s", "wall s in all", _field("wall_ms", 1e-3), compared=False)),
    "touch": _operations("extension", Metric("wall_ns_per_op", "wall ns", _field("wall_ns_per_op"), compared=False)),
    "memory": (Metric("bytes_per_timeout", "bytes per timeout", _field("bytes_per_timeout")),),
    "idle": (WAKEUPS, Metric("cpu_ms_per_s", "CPU ms per s", _field("cpu_ms_per_s"), compared=False)),
    "far": (CPU_SHARE, WAKEUPS),
    "late": (
        Metric("p50", "p50 µs", _quantile(500)),
        Metric("p99", "p99 µs", _quantile(990)),
        Metric("p99.9", "p99.9 µs", _quantile(999), compared=False),
        Metric("max", "max µs", _quantile(1000), compared=False),
        Metric("early", "too early", _field("early"), compared=False),
    ),
}


def main_metric(workload: str) -> Metric:
    return METRICS[workload][0]


def metric(workload: str, key: str) -> Metric:
    return next(candidate for candidate in METRICS[workload] if candidate.key == key)


CHECKSUMS = ("fired", "fired_sum", "cancelled", "cancelled_sum")
CHECKED_WORKLOADS = ("churn", "expire", "touch")
