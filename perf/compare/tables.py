"""The tables: one that holds ours against the targets, and one for each section of the plan."""

from __future__ import annotations

from collections.abc import Sequence

from . import formats
from .checks import Difference
from .grid import Grid, Notes
from .metrics import METRICS, Metric, main_metric
from .plan import NETTY, OURS, Config, Section, label, plural, short_label, ticks
from .results import Runner
from .summary import Summary
from .targets import Verdict

NONE = "–"


class Tables:
    def __init__(self, summary: Summary, differences: Sequence[Difference], emphasis: bool) -> None:
        self.summary = summary
        self._emphasis = emphasis  # as Markdown has it
        self._different: dict[tuple[str, Config], list[Difference]] = {}
        for difference in differences:
            self._different.setdefault((difference.runner, difference.config), []).append(difference)

    def _title(self, name: str) -> str:
        runner = self.summary.results.runner(name)
        return runner.title if runner else name.capitalize()

    # --- Cells --------------------------------------------------------------------------------------------------------

    def _marks(self, name: str, config: Config, notes: Notes) -> str:
        """Footnotes on one figure."""
        marks = []
        different = self._different.get((name, config), [])
        if different:
            where = f"in {plural(len(different), 'round')}, first in round {different[0].round}"
            marks.append(notes.mark(f"{self._title(name)}: NOT EQUAL WORK {where}: {different[0].detail}"))
        failures = self.summary.failures(name, config)
        if failures:
            first = failures[0]
            where = f"{self._title(name)}: {label(config)}: {first.status} in {plural(len(failures), 'round')}"
            marks.append(notes.mark(f"{where}: {first.message}"))
        note = self.summary.note(name, config)
        if note:
            marks.append(notes.mark(note))
        return "".join(dict.fromkeys(marks))

    def _value(self, name: str, config: Config, metric: Metric) -> str | None:
        value = self.summary.value(name, config, metric)
        return None if value is None else formats.number(value.median)

    def _cell(self, name: str, config: Config, metric: Metric, notes: Notes, marks: bool) -> str:
        """Figure, ratio and spread in one, or why there is none."""
        text = self._value(name, config, metric)
        if text is None:
            known = any(self._value(name, config, other) for other in METRICS[config.workload])
            text = NONE if known else self.summary.why_none(name, config)
        ratio = self.summary.ratio(name, config, metric) if name != OURS and metric.compared else None
        if ratio is not None:
            text += f" · {formats.ratio_and_spread(ratio)}"
        mark = self._marks(name, config, notes) if marks else ""
        return f"{text} {mark}" if mark else text

    def _bold(self, text: str, name: str) -> str:
        return f"**{text}**" if self._emphasis and name == OURS else text

    # --- On the terminal ----------------------------------------------------------------------------------------------

    def blocks(self, section: Section, notes: Notes) -> Grid:
        """A block for each configuration, a line for each runner."""
        metrics = METRICS[section.workload]
        compared = main_metric(section.workload).compared
        columns = ["", *(metric.title for metric in metrics), *(["ratio", "range"] if compared else [])]
        grid = Grid(columns)
        for config in section.configs:
            grid.rows.append([short_label(config)])
            for runner in self.summary.shown(section, config):
                grid.rows.append(self._line(runner, config, metrics, compared, notes))
        return grid

    def _line(
        self, runner: Runner, config: Config, metrics: Sequence[Metric], compared: bool, notes: Notes
    ) -> list[str]:
        marks = self._marks(runner.name, config, notes)
        title = f"  {runner.title} {marks}".rstrip()
        values = [self._value(runner.name, config, metric) for metric in metrics]
        if not any(values):
            return [f"{title}: {self.summary.why_none(runner.name, config)}"]
        row = [title, *(value or NONE for value in values)]
        if compared:
            ratio = self.summary.ratio(runner.name, config, metrics[0]) if runner.name != OURS else None
            row += [formats.ratio(ratio), formats.spread(ratio)] if ratio else ["", ""]
        return row

    # --- On the page --------------------------------------------------------------------------------------------------

    def full(self, section: Section, notes: Notes) -> Grid:
        return self._sweep(section, notes) if section.varies else self._by_runner(section, notes)

    def _by_runner(self, section: Section, notes: Notes) -> Grid:
        metrics = _page_metrics(section)
        cells = [(config, metric) for config in section.configs for metric in metrics]
        grid = Grid(["", *(_column(section, config, metric, metrics) for config, metric in cells)])
        for runner in self.summary.shown(section, *section.configs):
            row = [self._bold(runner.title, runner.name)]
            for config, metric in cells:
                row.append(self._page_cell(section, runner, config, metric, notes, marks=metric is metrics[0]))
            grid.rows.append(row)
        return grid

    def _page_cell(
        self, section: Section, runner: Runner, config: Config, metric: Metric, notes: Notes, marks: bool
    ) -> str:
        if runner not in self.summary.shown(section, config):
            return NONE
        return self._bold(self._cell(runner.name, config, metric, notes, marks), runner.name)

    def _sweep(self, section: Section, notes: Notes) -> Grid:
        metric = main_metric(section.workload)
        runners = self.summary.shown(section, *section.configs)
        several_ticks = len({config.tick_ms for config in section.configs}) > 1
        grid = Grid([section.varies or "", *(runner.title for runner in runners)])
        if several_ticks:
            grid.columns.insert(0, "tick")
            grid.words = frozenset([0, 1])
        for config in section.configs:
            row = [f"{getattr(config, section.varies or ''):,}"]
            if several_ticks:
                row.insert(0, f"{config.tick_ms} ms")
            row += [self._page_cell(section, runner, config, metric, notes, marks=True) for runner in runners]
            grid.rows.append(row)
        return grid

    # --- Against the targets ------------------------------------------------------------------------------------------

    def headline(self, verdicts: Sequence[Verdict]) -> Grid:
        columns = ["workload", "hashed_wheel_timer", "Netty", "ratio", "target", "reached"]
        grid = Grid(columns, words=frozenset([0, 4, 5]))
        for verdict in verdicts:
            grid.rows.append(self._headline_row(verdict))
        return grid

    def _headline_row(self, verdict: Verdict) -> list[str]:
        config, metric = verdict.config, verdict.metric
        ours = self._value(OURS, config, metric) or self.summary.why_none(OURS, config)
        theirs = self._value(verdict.other, config, metric) or self.summary.why_none(verdict.other, config)
        if verdict.other != NETTY:
            theirs = f"{self._title(verdict.other)}: {theirs}"
        ratio = self.summary.ratio(verdict.other, config, metric) if metric.compared else None
        reached = {True: "yes", False: "NO", None: "not measured"}[verdict.reached]
        if self._emphasis and verdict.reached is False:
            reached = "**no**"
        spread = formats.ratio_and_spread(ratio) if ratio else NONE
        return [verdict.title, ours, theirs, spread, verdict.target.text, reached]


def _page_metrics(section: Section) -> Sequence[Metric]:
    """Where there are several configurations side by side, only what fits."""
    metrics = METRICS[section.workload]
    return metrics if len(section.configs) == 1 or section.workload == "idle" else metrics[:1]


def _column(section: Section, config: Config, metric: Metric, metrics: Sequence[Metric]) -> str:
    if len(section.configs) == 1:
        return metric.title
    where = ticks(config) if section.workload == "touch" else short_label(config)
    return where if len(metrics) == 1 else f"{where}: {metric.title}"
