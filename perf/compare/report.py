"""The tables: all of them as aligned text for the terminal, the important ones as Markdown for the page."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from . import system
from .metrics import METRICS, Metric, Spread, figure_range, main_metric, number, ratio_and_range, ratio_range
from .plan import NETTY, OURS, Config, Section, label, plural, short_label, ticks
from .results import Results, Runner
from .summary import Summary, Verdict, verdicts

NONE = "–"
SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
BEGIN = "<!-- results: begin -->"
END = "<!-- results: end -->"

EXPLANATIONS = {
    "churn": "Each thread cancels the oldest of its 1,000 pending timeouts and schedules a new one, like a client that "
    "got an answer and sends the next request.",
    "handoff": "Of each pair of threads, one schedules and the other cancels. They pass handles in batches of 256. All "
    "pairs share one timer with a tick of 1 ms. The number in flight is that of one pair.",
    "threads": "Churn with more threads.",
    "pending": "Churn with one thread, a tick of 1 ms and more pending timeouts.",
    "expire": "All timeouts are scheduled at once, with delays of 1 to 1000 ms, and run.",
    "memory": "Timeouts of one hour. Each callable captures 16 bytes.",
    "idle": "A started timer without timeouts.",
    "far": "All timeouts are due in 10 to 20 minutes.",
    "late": "The time from a deadline to the start of the task. HierarchicalWheelTimer has the ticks of microseconds.",
    "rate": "100,000 timeouts of 300 s each second, for ten seconds. All but one of a thousand are cancelled 10 ms later. "
    "The figure is the growth of the memory.",
    "touch": "The deadline of one of many timeouts moves to a later time.",
}


@dataclass
class Table:
    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)
    words: int = 1  # the number of leading columns that hold words
    also: tuple[int, ...] = ()  # other columns that hold words
    ours_in: str = "row"  # where this library's figures are, for bold type: "row", "column" or ""
    notes: list[str] = field(default_factory=list)

    def mark(self, note: str) -> str:
        """Returns the mark of a footnote. Equal notes share one."""
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
        """Formatted as mdformat does, with this library in bold."""

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
            parts.append(wrapped("<br> ".join(self._footnotes())))
        return "\n\n".join(parts)

    def _footnotes(self) -> list[str]:
        return [f"{self.mark(note)} {note}" for note in self.notes]


def wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


class _Tables:
    def __init__(self, summary: Summary) -> None:
        self.summary = summary

    def _notes(self, name: str, config: Config) -> list[str]:
        """The footnotes of a runner's figures."""
        title, notes = self.summary.results.title(name), []
        if different := [one for one in self.summary.results.unequal if (one.runner, one.config) == (name, config)]:
            where = f"in {plural(len(different), 'round')} of {label(config)}, first in round {different[0].round}"
            notes.append(f"{title}: NOT EQUAL WORK {where}: {different[0].detail}")
        if failures := self.summary.failures(name, config):
            where = f"{title}: {label(config)}: {failures[0].status} in {plural(len(failures), 'round')}"
            notes.append(f"{where}: {failures[0].message}")
        return notes + list(filter(None, self.summary.note(name, config).split("; ")))

    def _value(self, name: str, config: Config, metric: Metric) -> str:
        value = self.summary.value(name, config, metric)
        return number(value.median) if value else ""

    def _ratio(self, name: str, config: Config, metric: Metric) -> str:
        ratio = self.summary.ratio(name, config, metric) if metric.compared and name != OURS else None
        return ratio_and_range(ratio) if ratio else ""

    def _cell(self, table: Table, section: Section, runner: Runner, config: Config, metric: Metric) -> str:
        """Figure, ratio and range, or the reason why there is none."""
        if runner not in self.summary.shown(section, config):
            return NONE
        text = self._value(runner.name, config, metric)
        if not text:
            known = any(self._value(runner.name, config, other) for other in METRICS[config.workload])
            text = NONE if known else self.summary.why_none(runner.name, config)
        text = " · ".join(filter(None, [text, self._ratio(runner.name, config, metric)]))
        notes = self._notes(runner.name, config) if metric is main_metric(config.workload) else []
        return " ".join([text, *map(table.mark, notes)])

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

    def compact(self, columns: Sequence[tuple[str, Config, Metric]], ratios: bool = False) -> Table:
        """For the page: `columns` are a title and its figure. With `ratios` other runners show the range of the ratio
        instead of the figure. All footnotes of a runner are at its name."""
        table = Table(["", *(title for title, _, _ in columns)])
        for runner in self.summary.results.runners:
            if not any(self.summary.runs(runner.name, config) for _, config, _ in columns):
                continue
            notes, cells = list[str](), []
            for _, config, metric in columns:
                ratio = self.summary.ratio(runner.name, config, metric) if ratios and runner.name != OURS else None
                text = ratio_range(ratio) if ratio else self._value(runner.name, config, metric)
                cells.append(text or NONE)
                notes += self._notes(runner.name, config)
                if not text and self.summary.runs(runner.name, config):
                    notes.append(self.summary.why_none(runner.name, config))
            marks = map(table.mark, dict.fromkeys(notes))
            table.rows.append([" ".join([runner.title, *marks]), *cells])
        return table

    def targets(self, found: Sequence[Verdict]) -> Table:
        """For the page: a row for each target, with the range of the figures or ratios that it is about."""
        table = Table(["workload", "target", "measured", "reached"], words=2, ours_in="")
        for target in dict.fromkeys(verdict.target for verdict in found):
            group = [verdict for verdict in found if verdict.target == target]
            tick = f", {ticks(group[0].config)}" if target.tick_ms else ""
            title = group[0].title if len(group) == 1 else target.workload + tick
            reached = [verdict.reached for verdict in group].count(True)
            share = f"{reached} of {len(group)}"
            share = share if reached == len(group) else f"**{share}**"
            table.rows.append([title, target.text, self._measured(group), share])
        return table

    def _measured(self, group: Sequence[Verdict]) -> str:
        target = group[0].target
        if target.at_most is not None:
            values = [self.summary.value(target.runner, verdict.config, target.metric) for verdict in group]
        else:
            values = [self.summary.ratio(verdict.other, verdict.config, target.metric) for verdict in group]
        medians = [value.median for value in values if value]
        if not medians:
            return NONE
        spread = Spread(medians[0], min(medians), max(medians))
        return figure_range(spread) if target.at_most is not None else ratio_range(spread)

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


# --- Text -------------------------------------------------------------------------------------------------------------


def _machine(results: Results) -> str:
    machine = results.machine
    virtual = " of a virtual machine" if machine.get("virtual") else ""
    words = [machine["cpu"], plural(machine["cores"], "core") + virtual, machine["kernel"]]
    words += [f"{key} {machine[key]}" for key in ("governor", "clock") if machine.get(key)]
    return ", ".join(words)


def _head(summary: Summary) -> list[str]:
    results = summary.results
    commit = f"{results.commit} with local changes" if results.dirty else results.commit
    parts = ["A quick run: the figures mean nothing."] if results.quick else []
    parts += [] if results.finished else ["Interrupted: the figures are not complete."]
    parts.append(
        f"{_machine(results)}. Commit {commit}, built with {results.compiler}, {results.date[:10]}. Medians of "
        f"{plural(summary.rounds, 'round')}. In each round all timers ran one after another, in an order that changes."
    )
    return parts


def _list(results: Results) -> list[str]:
    versions = [f"- {runner.title} {runner.version} ({runner.runtime})" for runner in results.runners]
    return versions + [f"- Left out: {runner.title}, {runner.reason}" for runner in results.left_out]


def _what(section: Section) -> str:
    """The text under a title: the workload and its figures."""
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


def problems(results: Results) -> str:
    failed = [run for run in results.runs if run.failed]
    lines = ["NOT EQUAL WORK: these figures must not be compared"] if results.unequal else []
    lines += [f"  {difference}" for difference in results.unequal]
    lines += ["NOT DONE"] if failed else []
    lines += [f"  {run.runner}: {label(run.config)}, round {run.round}: {run.status}: {run.message}" for run in failed]
    return "\n".join(lines)


def terminal(summary: Summary) -> str:
    results, tables = summary.results, _Tables(summary)
    head = [*_head(summary), "A ratio is theirs / ours: of the medians, and in parentheses the range of the rounds."]
    parts = [textwrap.fill(" ".join(head), 100), "\n".join(_list(results))]
    for section in results.plan:
        parts.append(f"{section.title.upper()}: {_what(section)}\n{tables.of(section).text()}")
    found = verdicts(summary)
    if found:
        parts += ["AGAINST THE TARGETS\n" + tables.against_targets(found).text(), _score(found)]
    return "\n\n".join(filter(None, [*parts, problems(results)])) + "\n"


# --- The page ---------------------------------------------------------------------------------------------------------

Columns = list[tuple[str, Config, Metric]]


def _first(results: Results, workload: str) -> list[Config]:
    """The first configuration of the workload, which has a tick of 1 ms."""
    return [section.configs[0] for section in results.plan if section.workload == workload][:1]


def _cpu_columns(results: Results) -> Columns:
    of = {section.key: section.configs for section in results.plan}
    configs = [config for config in of.get("churn", []) if config.tick_ms == 1]
    configs += [config for config in of.get("handoff", []) if config.threads == 1]
    titles = [label(config).replace(f", {ticks(config)}", "") for config in configs]
    columns = [(title, config, main_metric(config.workload)) for title, config in zip(titles, configs)]
    return columns + [(name, config, main_metric(name)) for name in ("expire", "touch") for config in _first(results, name)]


def _rest_columns(results: Results) -> Columns:
    shown = {"memory": METRICS["memory"], "idle": METRICS["idle"], "far": METRICS["far"][:1]}
    metrics = [(name, metric) for name, metrics in shown.items() for metric in metrics]
    columns = [(f"{name}: {metric.title}", config, metric) for name, metric in metrics for config in _first(results, name)]
    rates = [config for section in results.plan if section.workload == "rate" for config in section.configs]
    return columns + [(f"{label(config)}: {METRICS['rate'][0].title}", config, METRICS["rate"][0]) for config in rates]


def _late_columns(results: Results) -> Columns:
    return [(metric.title, config, metric) for config in _first(results, "late") for metric in METRICS["late"]]


def page(summary: Summary, plots: Mapping[str, str]) -> str:
    """`plots`: for the key of a section, or "" for all, the link to its picture."""
    results, tables = summary.results, _Tables(summary)
    versions = "\n".join(wrapped(line, "  ") for line in _list(results))
    parts = [wrapped(" ".join(_head(summary))), versions]
    if results.unequal:
        names = ", ".join(sorted({difference.runner for difference in results.unequal}))
        parts.append(f"**Not equal work:** figures with a footnote that says so must not be compared ({names}).")
    if "" in plots:
        parts.append(f"![Cost of the workloads for each timer]({plots['']})")
    found = verdicts(summary)
    if found:
        parts += ["### Targets", wrapped(f"{_score(found)} A ratio is theirs / ours."), tables.targets(found).markdown()]
    if columns := _cpu_columns(results):
        text = "CPU ns per operation at a tick of 1 ms. The rows of other timers show the range of theirs / ours."
        parts += ["### CPU time", wrapped(text), tables.compact(columns, ratios=True).markdown()]
    if "pending" in plots:
        parts.append(f"![Churn with more threads and more pending timeouts]({plots['pending']})")
    if columns := _rest_columns(results):
        parts += ["### Memory and rest", tables.compact(columns).markdown()]
    if columns := _late_columns(results):
        parts += ["### Late", tables.compact(columns).markdown()]
    if "late" in plots:
        parts.append(f"![Late]({plots['late']})")
    return "\n\n".join(parts)


def update_page(path: Path, content: str, first: str = BEGIN, last: str = END) -> None:
    """Replaces the text between the markers of the page."""
    text = system.read_text(path) if path.exists() else f"{first}\n{last}\n"
    begin, end = text.find(first), text.find(last)
    if begin < 0 or end < begin or text.count(first) > 1 or text.count(last) > 1:
        raise system.Failure(f"{path} was left as it is: it needs {first} and {last}, once each and in this order")
    system.write_text(path, f"{text[: begin + len(first)]}\n\n{content.strip()}\n\n{text[end:]}")
