"""Reads what a runner prints, and does not take its word for having done what it was asked to do."""

from __future__ import annotations

import json
import math
from typing import Any

from .metrics import CHECKED_WORKLOADS, CHECKSUMS, METRICS, QUANTILES
from .plan import Config


class BadOutput(Exception):
    pass


def _objects(output: str) -> list[dict[str, Any]]:
    """One for each line that is an object; a runtime may print lines of its own between them."""
    found = []
    for line in output.splitlines():
        if not line.startswith("{"):
            continue
        try:
            value = json.loads(line)
        except ValueError as error:
            raise BadOutput(f"a line that is not JSON: {line[:60]}") from error
        found.append(value)
    return found


def parse_description(output: str) -> dict[str, str]:
    found = _objects(output)
    if len(found) != 1:
        raise BadOutput(f"{len(found)} objects instead of 1")
    return {key: str(found[0].get(key) or "unknown") for key in ("version", "runtime")}


def parse_round(output: str, config: Config) -> dict[str, Any]:
    """The one round that was asked for, or an object with `unsupported`."""
    found = _objects(output)
    unsupported = [result for result in found if result.get("unsupported")]
    if unsupported:
        return unsupported[0]
    if len(found) != 1:
        raise BadOutput(f"{len(found)} rounds instead of 1")
    result = found[0]
    _check_asked(result, config)
    _check_figures(result, config.workload)
    return result


def _check_asked(result: dict[str, Any], config: Config) -> None:
    """Equal work is the point of the comparison: an option that a runner ignores would spoil it silently."""
    for name in ("workload", "threads", "tick_ms", "pending", "count"):
        asked = getattr(config, name)
        said = result.get(name)
        if asked is not None and said is not None and said != asked:
            raise BadOutput(f"ran with {name} {said} instead of {asked}")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _check_figures(result: dict[str, Any], workload: str) -> None:
    if workload == "late":
        quantiles = result.get("late_us")
        if not isinstance(quantiles, list) or len(quantiles) != QUANTILES or not all(map(_is_number, quantiles)):
            raise BadOutput(f"late_us is not {QUANTILES} numbers")
    for metric in METRICS[workload]:
        try:
            value = metric.read(result)
        except (KeyError, TypeError, ValueError) as error:
            raise BadOutput(f"no figure for {metric.title}") from error
        if value is None and metric.key in ("wakeups_per_s", "early"):
            continue
        if not _is_number(value):
            raise BadOutput(f"no figure for {metric.title}")
    if workload in CHECKED_WORKLOADS:
        missing = [key for key in CHECKSUMS if result.get(key) is None]
        if missing:
            raise BadOutput(f"no {', '.join(missing)}")
