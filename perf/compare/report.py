"""The report, on the terminal and as the part of the page between its markers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from . import grid
from .checks import Difference
from .grid import Notes
from .measure import failures
from .metrics import main_metric
from .plan import Section, label
from .results import Results
from .summary import Summary
from .tables import Tables
from .targets import Verdict, verdicts

EXPLANATIONS = {
    "churn": "Each thread cancels the oldest of its 1,000 pending timeouts and schedules a new one: a request that was "
    "answered, and the next one.",
    "threads": "The same with more threads.",
    "pending": "The same with one thread at a tick of 1 ms, and more timeouts pending.",
    "expire": "All timeouts are scheduled at once, with delays of 1 to 1000 ms, and run.",
    "memory": "Timeouts of one hour, each with 16 bytes captured.",
    "idle": "A started timer with nothing to do.",
    "far": "Timeouts that are due in 10 to 20 minutes, and none before.",
    "late": "How long after its deadline a task starts.",
    "touch": "The deadline of one of many timeouts is put off.",
}


def _machine(results: Results) -> str:
    machine = results.machine
    cores = f"{machine['cores']} core" + ("" if machine["cores"] == 1 else "s")
    words = [f"{machine['cpu']}, {cores}" + (" of a virtual machine" if machine.get("virtual") else "")]
    words.append(machine["kernel"])
    if machine.get("governor"):
        words.append(f"governor {machine['governor']}")
    if machine.get("clock"):
        words.append(f"clock {machine['clock']}")
    return ", ".join(words)


def _commit(results: Results) -> str:
    return f"{results.commit} with local changes" if results.dirty else results.commit


def rounds_done(results: Results) -> int:
    return max((run.round for run in results.runs), default=0)


def _rounds(results: Results) -> str:
    rounds = rounds_done(results)
    return f"{rounds} rounds" if rounds != 1 else "1 round"


def _versions(results: Results) -> list[str]:
    return [f"{runner.title} {runner.version} ({runner.runtime})" for runner in results.runners]


def _figure(section: Section) -> str:
    return main_metric(section.workload).title


def _warnings(results: Results) -> list[str]:
    lines = []
    if results.quick:
        lines.append("A quick run: it shows that all works, its figures mean nothing.")
    if not results.finished:
        lines.append("Interrupted: what is here is not complete.")
    return lines


# --- On the terminal --------------------------------------------------------------------------------------------------


def terminal(summary: Summary, differences: Sequence[Difference]) -> str:
    results = summary.results
    tables = Tables(summary, differences, emphasis=False)
    parts = ["\n".join([_machine(results), f"commit {_commit(results)}, {results.compiler}", *_versions(results)])]
    parts[0] += "".join(f"\nleft out: {runner.title}: {runner.reason}" for runner in results.left_out)
    for section in results.plan:
        notes = Notes()
        head = f"{section.title.upper()}: {_figure(section)}, median of {_rounds(results)}"
        if main_metric(section.workload).compared:
            head += "; ratio: theirs / ours"
        table = grid.text(tables.full(section, notes) if section.varies else tables.blocks(section, notes))
        parts.append("\n".join([head, table, *("  " + line for line in notes.lines())]))
    found = verdicts(summary)
    if found:
        parts.append("TARGETS\n" + grid.text(tables.headline(found)))
        parts.append(_score(found))
    parts += _warnings(results) + _problems(results, differences)
    return "\n\n".join(parts) + "\n"


def _score(found: Sequence[Verdict]) -> str:
    reached = sum(verdict.reached is True for verdict in found)
    missed = [verdict for verdict in found if verdict.reached is False]
    unknown = len(found) - reached - len(missed)
    line = f"{reached} of {len(found)} targets reached"
    return line + (f", {unknown} not measured" if unknown else "")


def _problems(results: Results, differences: Sequence[Difference]) -> list[str]:
    parts = []
    if differences:
        parts.append("NOT EQUAL WORK: these figures must not be compared\n" + _list(differences))
    failed = failures(results)
    if failed:
        lines = [f"{run.runner}: {label(run.config)}, round {run.round}: {run.status}: {run.message}" for run in failed]
        parts.append("NOT DONE\n" + _list(lines))
    return parts


def _list(lines: Iterable[object]) -> str:
    return "\n".join(f"  {line}" for line in lines)


# --- On the page ------------------------------------------------------------------------------------------------------


def page(summary: Summary, differences: Sequence[Difference], plots: Mapping[str, str]) -> str:
    """`plots`: for the key of a section, the link to its picture."""
    results = summary.results
    tables = Tables(summary, differences, emphasis=True)
    parts = [_head(results)]
    if differences:
        names = ", ".join(sorted({difference.runner for difference in differences}))
        parts.append(f"**Not equal work:** figures with a footnote that says so must not be compared ({names}).")
    found = verdicts(summary)
    if found:
        parts.append("### Against the targets")
        parts.append(grid.markdown(tables.headline(found)))
        parts.append(f"{_score(found)}. Ratio: Netty (or who is named) divided by ours.")
    for section in results.plan:
        parts += _section(section, tables, plots)
    return "\n\n".join(parts)


def _head(results: Results) -> str:
    first = (
        f"{_machine(results)}. Commit {_commit(results)}, built with {results.compiler}, {results.date[:10]}. "
        f"Medians of {_rounds(results)}; in each, all timers ran one after another on the same configuration, "
        "in an order that changes. A ratio is theirs divided by ours: its median over the rounds, with the "
        "lowest and the highest in parentheses."
    )
    lines = [*_warnings(results), first, "", *(f"- {version}" for version in _versions(results))]
    lines += [f"- Left out: {runner.title}, {runner.reason}" for runner in results.left_out]
    return "\n".join(lines)


def _section(section: Section, tables: Tables, plots: Mapping[str, str]) -> list[str]:
    notes = Notes()
    table = grid.markdown(tables.full(section, notes))
    ratio = " · ratio (range)" if main_metric(section.workload).compared else ""
    single = not section.varies and len(section.configs) == 1
    what = "" if single else f" {_figure(section)[0].upper()}{_figure(section)[1:]}{ratio}:"
    if section.workload == "idle":
        what = ""
    where = f" {label(section.configs[0]).split(', ', 1)[1].capitalize()}." if single else ""
    parts = [f"### {section.title}", EXPLANATIONS.get(section.key, "") + where + what, table]
    if notes.lines():
        parts.append("<br>\n".join(notes.lines()))
    if section.key in plots:
        parts.append(f"![{section.title}]({plots[section.key]})")
    return parts
