"""The tables, once: on the terminal as aligned text, and as Markdown on the page between its markers."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from . import system
from .metrics import METRICS, Metric, main_metric, number, ratio_and_range
from .plan import NETTY, OURS, Config, Section, label, plural, short_label, ticks
from .results import Results, Runner
from .summary import Difference, Summary, Verdict, verdicts

NONE = "–"
SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
BEGIN = "<!-- results: begin -->"
END = "<!-- results: end -->"

EXPLANATIONS = {
    "churn": "Each thread cancels the oldest of its 1,000 pending timeouts and schedules a new one: a request that was "
    "answered, and the next one.",
    "handoff": "An RPC client: of a pair of threads one schedules, the other one cancels; handles go over in batches of "
    "256. All pairs share one timer, at a tick of 1 ms; in flight are so many timeouts of each pair.",
    "threads": "Churn with more threads.",
    "pending": "Churn with one thread at a tick of 1 ms, and more timeouts pending.",
    "expire": "All timeouts are scheduled at once, with delays of 1 to 1000 ms, and run.",
    "memory": "Timeouts of one hour, each with 16 bytes captured.",
    "idle": "A started timer with nothing to do.",
    "far": "Timeouts that are due in 10 to 20 minutes, and none before.",
    "late": "How long after its deadline a task starts. With ticks of microseconds it is HierarchicalWheelTimer.",
    "touch": "The deadline of one of many timeouts is put off.",
}


@dataclass
class Table:
    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)
    words: int = 1  # so many columns hold words, and those in `also`; the others hold figures
    also: tuple[int, ...] = ()
    ours_in: str = "row"  # where this library's figures are, to be set in bold: "row", "column" or ""
    notes: list[str] = field(default_factory=list)

    def mark(self, note: str) -> str:
        """Of a footnote, each text once."""
        if note not in self.notes:
            self.notes.append(note)
        return str(self.notes.index(note) + 1).translate(SUPERSCRIPTS)

    def _holds_words(self, column: int) -> bool:
        return column < self.words or column in self.also

    def text(self) -> str:
        rows = [self.columns, *self.rows]
        widths = [max(map(len, column)) for column in zip(*rows)]
        sides = ["<" if self._holds_words(i) else ">" for i in range(len(widths))]
        lines = ["  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths)) for row in rows]
        return "\n".join("  " + line.rstrip() for line in [*lines, *self._footnotes()])

    def markdown(self) -> str:
        """With this library in bold, and as mdformat leaves it."""

        def shown(row: list[str], column: int) -> str:
            cell = row[column]
            if OURS == {"row": row[0], "column": self.columns[column]}.get(self.ours_in):
                return f"**{cell}**"
            return "**no**" if cell == "NO" else cell

        places = range(len(self.columns))
        lines = [self.columns, ["--" if self._holds_words(i) else "-:" for i in places]]
        lines += [[shown(row, column) for column in places] for row in self.rows]
        parts = ["\n".join("| " + " | ".join(row) + " |" for row in lines)]
        if self.notes:
            parts.append(_wrapped("<br> ".join(self._footnotes())))
        return "\n\n".join(parts)

    def _footnotes(self) -> list[str]:
        return [f"{self.mark(note)} {note}" for note in self.notes]


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


class _Tables:
    def __init__(self, summary: Summary, differences: Sequence[Difference]) -> None:
        self.summary = summary
        self.differences = differences

    def _marks(self, table: Table, name: str, config: Config) -> str:
        """Footnotes on one figure."""
        title, notes = self.summary.results.title(name), [self.summary.note(name, config)]
        if failures := self.summary.failures(name, config):
            where = f"{title}: {label(config)}: {failures[0].status} in {plural(len(failures), 'round')}"
            notes.insert(0, f"{where}: {failures[0].message}")
        if different := [one for one in self.differences if (one.runner, one.config) == (name, config)]:
            where = f"in {plural(len(different), 'round')}, first in round {different[0].round}"
            notes.insert(0, f"{title}: NOT EQUAL WORK {where}: {different[0].detail}")
        return "".join(table.mark(note) for note in notes if note)

    def _value(self, name: str, config: Config, metric: Metric) -> str:
        value = self.summary.value(name, config, metric)
        return number(value.median) if value else ""

    def _ratio(self, name: str, config: Config, metric: Metric) -> str:
        ratio = self.summary.ratio(name, config, metric) if metric.compared and name != OURS else None
        return ratio_and_range(ratio) if ratio else ""

    def _cell(self, table: Table, section: Section, runner: Runner, config: Config, metric: Metric) -> str:
        """Figure, ratio and range in one, or why there is none."""
        if runner not in self.summary.shown(section, config):
            return NONE
        text = self._value(runner.name, config, metric)
        if not text:
            known = any(self._value(runner.name, config, other) for other in METRICS[config.workload])
            text = NONE if known else self.summary.why_none(runner.name, config)
        text = " · ".join(filter(None, [text, self._ratio(runner.name, config, metric)]))
        marks = self._marks(table, runner.name, config) if metric is main_metric(config.workload) else ""
        return f"{text} {marks}".rstrip()

    def of(self, section: Section) -> Table:
        return self._sweep(section) if section.varies else self._by_runner(section)

    def _by_runner(self, section: Section) -> Table:
        single = len(section.configs) == 1
        metrics = METRICS[section.workload] if single or section.workload == "idle" else METRICS[section.workload][:1]
        cells = [(config, metric) for config in section.configs for metric in metrics]
        table = Table([""])
        for config, metric in cells:
            where = ticks(config) if section.workload == "touch" else short_label(config)
            table.columns.append(metric.title if single else where + (f": {metric.title}" if len(metrics) > 1 else ""))
        for runner in self.summary.shown(section, *section.configs):
            figures = [self._cell(table, section, runner, config, metric) for config, metric in cells]
            table.rows.append([runner.title, *figures])
        return table

    def _sweep(self, section: Section) -> Table:
        assert section.varies
        metric = main_metric(section.workload)
        runners = self.summary.shown(section, *section.configs)
        several_ticks = len({config.tick_ms for config in section.configs}) > 1
        begin = ["tick", section.varies] if several_ticks else [section.varies]
        table = Table([*begin, *(runner.title for runner in runners)], words=len(begin), ours_in="column")
        for config in section.configs:
            row = [f"{config.tick_ms} ms", f"{getattr(config, section.varies):,}"][-len(begin) :]
            table.rows.append(row + [self._cell(table, section, runner, config, metric) for runner in runners])
        return table

    def against_targets(self, found: Sequence[Verdict]) -> Table:
        table = Table(["workload", OURS, "Netty", "ratio", "target", "reached"], also=(4, 5), ours_in="")
        for verdict in found:
            config, metric, other = verdict.config, verdict.target.metric, verdict.other
            either = (verdict.target.runner, other)
            ours, theirs = (self._value(who, config, metric) or self.summary.why_none(who, config) for who in either)
            named = theirs if other == NETTY else f"{self.summary.results.title(other)}: {theirs}"
            reached = {True: "yes", False: "NO", None: "not measured"}[verdict.reached]
            comparable = verdict.target.runner == OURS
            ratio = self._ratio(other, config, metric) if comparable else ""
            table.rows.append([verdict.title, ours, named, ratio or NONE, verdict.target.text, reached])
        return table


# --- In words ---------------------------------------------------------------------------------------------------------


def _machine(results: Results) -> str:
    machine = results.machine
    virtual = " of a virtual machine" if machine.get("virtual") else ""
    words = [machine["cpu"], plural(machine["cores"], "core") + virtual, machine["kernel"]]
    words += [f"{key} {machine[key]}" for key in ("governor", "clock") if machine.get(key)]
    return ", ".join(words)


def _head(summary: Summary) -> list[str]:
    results = summary.results
    commit = f"{results.commit} with local changes" if results.dirty else results.commit
    parts = ["A quick run: it shows that all works, its figures mean nothing."] if results.quick else []
    parts += [] if results.finished else ["Interrupted: what is here is not complete."]
    parts.append(
        f"{_machine(results)}. Commit {commit}, built with {results.compiler}, {results.date[:10]}. Medians of "
        f"{plural(summary.rounds, 'round')}; in each, all timers ran one after another on the same configuration, in "
        "an order that changes. A ratio is theirs divided by ours: the ratio of the medians, with the lowest and the "
        "highest ratio of a round in parentheses."
    )
    return parts


def _list(results: Results) -> list[str]:
    versions = [f"- {runner.title} {runner.version} ({runner.runtime})" for runner in results.runners]
    return versions + [f"- Left out: {runner.title}, {runner.reason}" for runner in results.left_out]


def _what(section: Section) -> str:
    """Under the title: what was done, and what the figures are."""
    text = EXPLANATIONS[section.key]
    if not section.varies and len(section.configs) == 1:
        return f"{text} {label(section.configs[0]).split(', ', 1)[1].capitalize()}."
    if section.workload == "idle":
        return text
    title = main_metric(section.workload).title
    return f"{text} {title[0].upper()}{title[1:]} · ratio (range):"


def _score(found: Sequence[Verdict]) -> str:
    reached = [verdict.reached for verdict in found]
    unknown = f", {reached.count(None)} not measured" if None in reached else ""
    return f"{reached.count(True)} of {len(found)} targets reached{unknown}."


def problems(results: Results, differences: Sequence[Difference]) -> str:
    failed = [run for run in results.runs if run.failed]
    lines = ["NOT EQUAL WORK: these figures must not be compared"] if differences else []
    lines += [f"  {difference}" for difference in differences]
    lines += ["NOT DONE"] if failed else []
    lines += [f"  {run.runner}: {label(run.config)}, round {run.round}: {run.status}: {run.message}" for run in failed]
    return "\n".join(lines)


def terminal(summary: Summary, differences: Sequence[Difference]) -> str:
    results, tables = summary.results, _Tables(summary, differences)
    parts = [*(textwrap.fill(part, 100) for part in _head(summary)), "\n".join(_list(results))]
    for section in results.plan:
        parts.append(f"{section.title.upper()}: {_what(section)}\n{tables.of(section).text()}")
    found = verdicts(summary)
    if found:
        parts += ["AGAINST THE TARGETS\n" + tables.against_targets(found).text(), _score(found)]
    return "\n\n".join(filter(None, [*parts, problems(results, differences)])) + "\n"


def page(summary: Summary, differences: Sequence[Difference], plots: Mapping[str, str]) -> str:
    """`plots`: for the key of a section, or "" for all, the link to its picture."""
    results, tables = summary.results, _Tables(summary, differences)
    parts = [*map(_wrapped, _head(summary)), "\n".join(_wrapped(line, "  ") for line in _list(results))]
    if differences:
        names = ", ".join(sorted({difference.runner for difference in differences}))
        parts.append(f"**Not equal work:** figures with a footnote that says so must not be compared ({names}).")
    if "" in plots:
        parts.append(f"![What the workloads cost each timer]({plots['']})")
    found = verdicts(summary)
    if found:
        parts += ["### Against the targets", tables.against_targets(found).markdown()]
        parts.append(_wrapped(f"{_score(found)} Ratio: Netty (or the timer that is named) divided by ours."))
    for section in results.plan:
        parts += [f"### {section.title}", _wrapped(_what(section)), tables.of(section).markdown()]
        if section.key in plots:
            parts.append(f"![{section.title}]({plots[section.key]})")
    return "\n\n".join(parts)


def update_page(path: Path, content: str) -> None:
    """Puts the results between the markers of the page."""
    text = system.read_text(path) if path.exists() else f"{BEGIN}\n{END}\n"
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < begin or text.count(BEGIN) > 1 or text.count(END) > 1:
        raise system.Failure(f"{path} was left as it is: it needs {BEGIN} and {END} once each, in this order")
    system.write_text(path, f"{text[: begin + len(BEGIN)]}\n\n{content.strip()}\n\n{text[end:]}")
