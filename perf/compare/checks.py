"""Equal work: what was run and what was cancelled must be the same for all."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from .metrics import CHECKED_WORKLOADS, CHECKSUMS
from .plan import OURS, Config, label
from .results import OK, Results, Run

Sums = tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    runner: str
    config: Config
    round: int
    detail: str  # "fired 5 instead of 6"

    def __str__(self) -> str:
        return f"{label(self.config)}, round {self.round}: {self.runner}: {self.detail}"


def differences(results: Results) -> list[Difference]:
    """Those who differ from this library, or, without it, from most."""
    groups: dict[tuple[Config, int], list[Run]] = {}
    for run in results.runs:
        if run.status == OK and run.result and run.config.workload in CHECKED_WORKLOADS:
            groups.setdefault((run.config, run.round), []).append(run)
    found = []
    for runs in groups.values():
        expected = _expected(runs)
        found += [_difference(run, expected) for run in runs if _sums(run) != expected]
    return found


def _sums(run: Run) -> Sums:
    return tuple(str((run.result or {}).get(key)) for key in CHECKSUMS)


def _expected(runs: list[Run]) -> Sums:
    for run in runs:
        if run.runner == OURS:
            return _sums(run)
    return Counter(map(_sums, runs)).most_common(1)[0][0]


def _difference(run: Run, expected: Sums) -> Difference:
    pairs = zip(CHECKSUMS, _sums(run), expected)
    detail = ", ".join(f"{key} {said} instead of {asked}" for key, said, asked in pairs if said != asked)
    return Difference(run.runner, run.config, run.round, detail)
