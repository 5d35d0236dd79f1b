"""Medians, ratios and their ranges; equal work; targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from .metrics import CHECKED_WORKLOADS, CHECKSUMS, CURVE, TARGETS, Metric, Spread, Target
from .plan import NETTY, OURS, SHORT_TICKS, Config, Section, label
from .results import FAILED, OK, TIMED_OUT, UNSUPPORTED, Difference, Results, Run, Runner


def spread(values: Sequence[float]) -> Spread | None:
    return Spread(median(values), min(values), max(values)) if values else None


class Summary:
    def __init__(self, results: Results) -> None:
        self.results = results
        self._runs: dict[tuple[str, Config], list[Run]] = {}
        for run in results.runs:
            self._runs.setdefault((run.runner, run.config), []).append(run)

    @property
    def rounds(self) -> int:
        return max((run.round for run in self.results.runs), default=0)

    def runs(self, runner: str, config: Config) -> list[Run]:
        return self._runs.get((runner, config), [])

    def shown(self, section: Section, *configs: Config) -> list[Runner]:
        """The runners of these configurations. A runner that ran one only for another section is left out."""
        names = [runner.name for runner in self.results.runners]
        entries = [entry for entry in section.entries if entry.config in configs]
        asked = [(name, entry.config) for entry in entries for name in entry.participants(names)]
        wanted = {name for name, config in asked if (name, config) in self._runs}
        return [runner for runner in self.results.runners if runner.name in wanted]

    def _by_round(self, runner: str, config: Config, metric: Metric) -> dict[int, float]:
        done = [run for run in self.runs(runner, config) if run.status == OK and run.result is not None]
        read = {run.round: metric.read(run.result) for run in done}  # type: ignore[arg-type]
        return {number: value for number, value in read.items() if value is not None}

    def value(self, runner: str, config: Config, metric: Metric) -> Spread | None:
        return spread(list(self._by_round(runner, config, metric).values()))

    def ratio(self, runner: str, config: Config, metric: Metric) -> Spread | None:
        """Theirs / ours: the ratio of the medians, with the lowest and the highest ratio of a round."""
        theirs = self._by_round(runner, config, metric)
        ours = self._by_round(OURS, config, metric)
        if any(value < 0 for value in theirs.values()):
            return None  # tasks ran before their deadlines: a ratio means nothing
        rounds = [theirs[number] / ours[number] for number in theirs if ours.get(number, 0) > 0]
        if not rounds or median(ours.values()) <= 0:
            return None
        return Spread(median(theirs.values()) / median(ours.values()), min(rounds), max(rounds))

    def why_none(self, runner: str, config: Config) -> str:
        """The text in place of a missing figure."""
        runs = {run.status: run for run in self.runs(runner, config)}
        if UNSUPPORTED in runs:
            return runs[UNSUPPORTED].message
        return next((status for status in (TIMED_OUT, FAILED) if status in runs), "not known" if runs else "not run")

    def failures(self, runner: str, config: Config) -> list[Run]:
        return [run for run in self.runs(runner, config) if run.failed]

    def note(self, runner: str, config: Config) -> str:
        notes = [str(run.result.get("note") or "") for run in self.runs(runner, config) if run.result]
        return next(filter(None, notes), "")

    def curve(self, runner: str, config: Config) -> list[float]:
        """The median of each percentile over the rounds, for `late`."""
        rounds = [run.result[CURVE] for run in self.runs(runner, config) if run.status == OK and run.result]
        return [median(values) for values in zip(*rounds)]


# --- Equal work: all runners must run and cancel the same timeouts ----------------------------------------------------


def differences(results: Results) -> list[Difference]:
    """Finds the runners whose checksums differ from this library's, or, without it, from those of the majority."""
    groups: dict[tuple[Config, int], dict[str, tuple[str, ...]]] = {}
    for run in results.runs:
        if run.status == OK and run.result and run.config.workload in CHECKED_WORKLOADS:
            if not any(key in run.result for key in CHECKSUMS):
                continue  # loaded from a file, which has none
            sums = tuple(str(run.result.get(key)) for key in CHECKSUMS)
            groups.setdefault((run.config, run.round), {})[run.runner] = sums
    found = []
    for (config, number), by_runner in groups.items():
        expected = by_runner.get(OURS) or Counter(by_runner.values()).most_common(1)[0][0]
        for runner, sums in by_runner.items():
            pairs = zip(CHECKSUMS, sums, expected)
            wrong = [f"{key} {said} instead of {due}" for key, said, due in pairs if said != due]
            if wrong:
                found.append(Difference(runner, config, number, ", ".join(wrong)))
    return found


def still_known(known: list[Difference], results: Results) -> list[Difference]:
    """Returns the differences of an earlier run, without those of rounds that were measured again. Runs that were loaded
    from a file have no checksums."""
    again = {(run.config, run.round) for run in results.runs if any(key in (run.result or {}) for key in CHECKSUMS)}
    return [one for one in known if (one.config, one.round) not in again]


# --- Against the targets ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    target: Target
    config: Config
    other: str  # the runner whose figure stands beside ours: for `at_most` Netty
    reached: bool | None  # None: not measured

    @property
    def title(self) -> str:
        short = SHORT_TICKS.get(self.target.runner)
        what = f"{self.config.workload}, tick {short} µs" if short else label(self.config)
        return ", ".join(filter(None, [what, self.target.name]))


def verdicts(summary: Summary) -> list[Verdict]:
    """One for each target and configuration, in the order of the targets."""
    configs = dict.fromkeys(config for section in summary.results.plan for config in section.configs)
    judged = [_judge(summary, target, config) for target in TARGETS for config in configs if target.applies(config)]
    return [verdict for verdict in judged if verdict]


def _judge(summary: Summary, target: Target, config: Config) -> Verdict | None:
    if target.at_most is not None:
        ours = summary.value(target.runner, config, target.metric)
        return Verdict(target, config, NETTY, None if ours is None else ours.median <= target.at_most)
    other = _fastest_other(summary, config, target.metric) if target.fastest else target.other
    # A target against Netty is listed even if Netty was left out, as not measured.
    names = [NETTY, *(runner.name for runner in summary.results.runners)]
    if other is None or other not in names:
        return None  # no runner to compare with
    ratio = summary.ratio(other, config, target.metric)
    if ratio is None:
        return Verdict(target, config, other, None)
    reached = ratio.median > 1 if target.parts is None else ratio.median >= target.parts
    return Verdict(target, config, other, reached)


def _fastest_other(summary: Summary, config: Config, metric: Metric) -> str | None:
    others = [runner.name for runner in summary.results.runners if runner.cross_thread]
    values = {name: summary.value(name, config, metric) for name in others if name not in (OURS, NETTY)}
    medians = {name: value.median for name, value in values.items() if value}
    return min(medians, key=lambda name: medians[name]) if medians else None
