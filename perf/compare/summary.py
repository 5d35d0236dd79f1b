"""Medians, ratios and their spread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from .metrics import Metric
from .plan import OURS, Config, Section, participants
from .results import FAILED, OK, TIMED_OUT, UNSUPPORTED, Results, Run, Runner


@dataclass(frozen=True)
class Spread:
    median: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread | None:
    return Spread(median(values), min(values), max(values)) if values else None


class Summary:
    def __init__(self, results: Results) -> None:
        self.results = results
        self._runs: dict[tuple[str, Config], list[Run]] = {}
        for run in results.runs:
            self._runs.setdefault((run.runner, run.config), []).append(run)

    def runs(self, runner: str, config: Config) -> list[Run]:
        return self._runs.get((runner, config), [])

    def shown(self, section: Section, *configs: Config) -> list[Runner]:
        """Who took part in any of these, except who did so only for another section's sake."""
        names = [runner.name for runner in self.results.runners]
        wanted = {
            (name, entry.config)
            for entry in section.entries
            if entry.config in configs
            for name in participants(entry, names)
            if (name, entry.config) in self._runs
        }
        return [runner for runner in self.results.runners if any((runner.name, config) in wanted for config in configs)]

    def _by_round(self, runner: str, config: Config, metric: Metric) -> dict[int, float]:
        values = {}
        for run in self.runs(runner, config):
            value = metric.read(run.result) if run.status == OK and run.result is not None else None
            if value is not None:
                values[run.round] = value
        return values

    def value(self, runner: str, config: Config, metric: Metric) -> Spread | None:
        return spread(list(self._by_round(runner, config, metric).values()))

    def ratio(self, runner: str, config: Config, metric: Metric) -> Spread | None:
        """Theirs / ours, each round for itself: what slowed the machine down for a while slowed down both."""
        theirs = self._by_round(runner, config, metric)
        ours = self._by_round(OURS, config, metric)
        if any(value < 0 for value in theirs.values()):
            return None  # nothing can be said of tasks that ran before their deadlines
        rounds = [number for number in theirs if ours.get(number, 0) > 0]
        return spread([theirs[number] / ours[number] for number in rounds])

    def why_none(self, runner: str, config: Config) -> str:
        """What stands in the place of a figure."""
        runs = self.runs(runner, config)
        if not runs:
            return "not run"
        for status in (UNSUPPORTED, TIMED_OUT, FAILED):
            for run in runs:
                if run.status == status:
                    return run.message if status == UNSUPPORTED else status
        return "not known"

    def failures(self, runner: str, config: Config) -> list[Run]:
        return [run for run in self.runs(runner, config) if run.status in (FAILED, TIMED_OUT)]

    def note(self, runner: str, config: Config) -> str:
        notes = [run.result.get("note") for run in self.runs(runner, config) if run.result]
        return next((str(note) for note in notes if note), "")
