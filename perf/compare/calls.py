"""`./run compare --calls`: the cost of a deadline in a whole call. Runs the programs of perf/calls."""

from __future__ import annotations

import datetime
import json
import math
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from . import machine, plots, report, system
from .measure import Progress
from .metrics import Spread, number
from .plan import plural
from .runners import BadOutput, Paths, parse_object
from .system import Failure

PROGRAMS = ("grpc", "kj", "asio")
NONE, OWN, OURS = 0, 1, 2  # the places of the blocks in a printed round; they ran in random order
ROUNDS, QUICK_ROUNDS, QUICK_CALLS = 500, 3, 100
LIMIT_SECONDS = 3600  # of each program
GOAL = 1.0  # percent of calls/s
BEGIN, END = "<!-- calls: begin -->", "<!-- calls: end -->"


@dataclass(frozen=True)
class Host:
    host: str
    calls: int  # in a block
    in_flight: int
    deadline_s: int
    rounds: list[list[list[int]]]  # for each round and block: its nanoseconds and its CPU nanoseconds

    def base(self, of: int) -> float:
        """The median without a deadline: nanoseconds (0) or CPU nanoseconds (1) of a block."""
        return median(blocks[NONE][of] for blocks in self.rounds)

    def lost(self, timer: int) -> list[float]:
        """The percentage of calls/s that the deadline costs in each round."""
        return [100 * (1 - blocks[NONE][0] / blocks[timer][0]) for blocks in self.rounds]

    def more(self, timer: int, than: int = NONE) -> list[float]:
        """How much more CPU the blocks of `timer` took than those of `than`, in percent, in each round."""
        return [100 * (blocks[timer][1] / blocks[than][1] - 1) for blocks in self.rounds]


def interval(values: Sequence[float]) -> Spread:
    """The median and its 95 % confidence interval, from the order of the values. Of up to ten values it spans all."""
    ordered, count = sorted(values), len(values)
    place = max(0, math.floor(count / 2 - 0.98 * math.sqrt(count)) - 1)
    return Spread(median(ordered), ordered[place], ordered[count - 1 - place])


def parse(output: str) -> Host:
    try:
        host = Host(**parse_object(output))
        if not host.rounds or any(len(blocks) != 3 or min(map(min, blocks)) <= 0 for blocks in host.rounds):
            raise BadOutput("not three blocks of each round")
        return host
    except (BadOutput, TypeError, ValueError) as error:
        raise Failure(f"a program of perf/calls printed something else: {error}") from error


# --- The run ----------------------------------------------------------------------------------------------------------


def run(paths: Paths, rounds: int | None, quick: bool) -> int:
    progress = Progress(sys.stderr)
    rounds = rounds or (QUICK_ROUNDS if quick else ROUNDS)
    arguments = ["--rounds", str(rounds), *(["--calls", str(QUICK_CALLS)] if quick else [])]
    start, spent = time.monotonic(), machine.spent() - _of_children()
    hosts = []
    for name in PROGRAMS:
        program = paths.cpp / "perf" / "calls" / f"{name}_calls"
        if not program.exists():
            progress.say(f"left out: {name}: its program was not built, because its library is missing")
            continue
        progress.say(f"{name}: {plural(rounds, 'round')}")
        outcome = system.run([str(program), *arguments], LIMIT_SECONDS)
        if not outcome.ok:
            how = f"took more than {LIMIT_SECONDS} s" if outcome.timed_out else f"status {outcome.status}"
            raise Failure(f"{program.name}: {outcome.err.strip() or how}")
        hosts.append(parse(outcome.out))
    if not hosts:
        raise Failure("no program of perf/calls was built")
    busy = max(0.0, machine.spent() - _of_children() - spent) / (time.monotonic() - start)
    found = {
        "machine": {**machine.describe(), "busy": round(busy, 1)},
        "commit": machine.commit(paths.root),
        "date": f"{datetime.date.today()}",
        "quick": quick,
        "hosts": [asdict(host) for host in hosts],
    }
    system.write_text(paths.kept / "calls.json", json.dumps(found) + "\n")  # kept if drawing fails
    return finish(found, paths)


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def finish(found: dict[str, Any], paths: Paths) -> int:
    """Prints the table, and writes it and the plot: to the published page, unless it was a quick run or lacks a host."""
    hosts = [Host(**host) for host in found["hosts"]]
    table, text = _table(hosts), _text(found, hosts)
    print(f"{text}\n\n{table.text()}", flush=True)
    public = not found["quick"] and len(hosts) == len(PROGRAMS)
    docs = paths.root / "docs" if public else paths.kept
    parts = [report.wrapped(text), table.markdown()]
    if plots.available():
        _draw(hosts, docs / "performance" / "calls.svg")
        parts.append("![The cost of a deadline in a call](performance/calls.svg)")
    page = docs / ("performance.md" if public else "calls.md")
    report.update_page(page, "\n\n".join(parts), BEGIN, END)
    print(f"page: {paths.shown(page)}", file=sys.stderr)
    return 0


# --- The table --------------------------------------------------------------------------------------------------------


def _text(found: dict[str, Any], hosts: Sequence[Host]) -> str:
    commit, dirty = found["commit"]
    cores = found["machine"]["cores"]
    rounds = sorted({len(host.rounds) for host in hosts})
    parts = ["A quick run: the figures mean nothing."] if found["quick"] else []
    parts.append(
        f"{found['machine']['cpu']}, {plural(cores, 'core')}, {found['machine']['busy']:g} busy with other "
        f"programs. Commit {commit}{' with local changes' if dirty else ''}, {found['date']}. Medians over "
        f"{'–'.join(map(str, rounds))} rounds of the differences within a round, with 95 % intervals. A round has three "
        "blocks in random order: without a deadline, on the host's timer, on ours. Goals: at most "
        f"{GOAL:g} % of calls/s, and less CPU than the host's timer. Open: it may be either."
    )
    return " ".join(parts)


def _table(hosts: Sequence[Host]) -> report.Table:
    head = ["host", "calls/s", "CPU µs a call", "calls/s lost: own", "ours", "CPU more: own", "ours", "goals"]
    table = report.Table(head, also=(7,), ours_in="")
    for host in hosts:
        cells = [host.host, f"{host.calls / host.base(0) * 1e9:,.0f}", number(host.base(1) / host.calls / 1e3)]
        cells += [_cell(interval(values(timer))) for values in (host.lost, host.more) for timer in (OWN, OURS)]
        rate, cpu = interval(host.lost(OURS)), interval(host.more(OURS, OWN))
        table.rows.append([*cells, f"calls/s {_goal(rate, GOAL)}, CPU {_goal(cpu, 0)}"])
    return table


def _cell(value: Spread) -> str:
    return f"{value.median:.1f} % ({value.low:.1f} to {value.high:.1f})".replace("-", "−")


def _goal(value: Spread, most: float) -> str:
    return "reached" if value.high <= most else "missed" if value.low > most else "open"


# --- The plot ---------------------------------------------------------------------------------------------------------


def _draw(hosts: Sequence[Host], path: Path) -> None:
    with plots.style.context(plots.SETTINGS, after_reset=True):
        height = 1.75 + 0.62 * len(hosts)
        figure = plots.Figure(figsize=(plots.WIDTH, height))
        figure.text(0.015, 1 - 0.14 / height, "The cost of a deadline in a call", va="top", fontsize=12.5, fontweight="bold")
        more = "percent of a call without a deadline; bar: the middle half of the rounds; dot and line: median, 95 % interval"
        figure.text(0.015, 1 - 0.40 / height, more, va="top", color=plots.MUTED)
        grid = figure.subplots(1, 2, sharey=True)
        figure.subplots_adjust(0.11, 0.3 / height, 0.985, 1 - 1.0 / height, wspace=0.06)
        _panel(grid[0], "Calls/s lost", [(host.host, host.lost) for host in hosts])
        _panel(grid[1], "CPU more", [(host.host, host.more) for host in hosts])
        grid[0].axvline(GOAL, color=plots.INK, linestyle="--", linewidth=1)
        grid[0].annotate("goal", (GOAL, 1), xycoords=("data", "axes fraction"), xytext=(3, -1), textcoords="offset points", va="bottom")
        plots.save(figure, path)


def _panel(axes: Any, title: str, of_hosts: Sequence[tuple[str, Any]]) -> None:
    colours = {OWN: plots.COLOURS["netty"], OURS: plots.STRONG}
    for index, (_, values) in enumerate(of_hosts):
        for timer, shift in ((OWN, -0.2), (OURS, 0.2)):
            ordered, place = sorted(values(timer)), index + shift
            low, high = ordered[len(ordered) // 4], ordered[3 * len(ordered) // 4]
            value = interval(ordered)
            axes.barh(place, high - low, left=low, height=0.3, color=colours[timer], alpha=0.3)
            axes.plot([value.low, value.high], [place, place], color=colours[timer], linewidth=2.5)
            axes.plot([value.median], [place], color=colours[timer], marker="o", markersize=6)
            name = f"{'ours' if timer == OURS else 'own'} {value.median:.1f} %".replace("-", "−")
            font = {"fontweight": "bold" if timer == OURS else "normal", "color": plots.INK}
            axes.annotate(name, (max(high, value.high), place), xytext=(5, 0), textcoords="offset points", va="center", **font)
    axes.set_yticks(range(len(of_hosts)), [host for host, _ in of_hosts])
    axes.set_ylim(len(of_hosts) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.use_sticky_edges = False
    axes.autoscale_view(scaley=False)
    left, right = axes.get_xlim()
    axes.set_xlim(left, right + 0.2 * (right - left))  # leaves room for the last text
    axes.axvline(0, color=plots.MUTED, linewidth=1)
    axes.xaxis.set_major_formatter("{x:g} %")
    axes.grid(axis="x")
    axes.set_title(title)
