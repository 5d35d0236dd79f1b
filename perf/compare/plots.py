"""The plots. No other file needs matplotlib."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from . import system
from .metrics import main_metric, number, ratio
from .plan import OURS, RING, SHORT_TICKS, Config, Section, plural, ticks
from .results import Runner
from .summary import Summary

try:
    import matplotlib
    from matplotlib import style
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter
except ImportError:
    matplotlib = None  # type: ignore[assignment]

WIDTH = 10.0  # inches
INK, MUTED, GRID, STRONG = "#1f2328", "#656d76", "#e3e6ea", "#0b57d0"
COLOURS = {
    OURS: STRONG,
    "ours-10us": "#4d8bf0",
    "ours-1us": "#8db8f8",
    "netty": "#c77f2c",
    "dubbo": "#9678b6",
    "kafka": "#5f6b7a",
    "go-zero": "#4a9c97",
    "tokio": "#b8626f",
    "tokio-inside": "#d08c97",
    "tokio-alt": "#dfb3ba",
    "go": "#7fbdb9",
    "asio": "#86a04e",
    "brpc": "#3f7f5f",
    "libuv": "#a1887f",
}
DASHES = ("--", "-.", (0, (1, 1.2)), (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (3, 1)))  # ours is solid

SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "hashed_wheel_timer",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "grid.color": GRID,
    "legend.frameon": False,
}


def available() -> bool:
    return matplotlib is not None


def draw_all(summary: Summary, folder: Path) -> dict[str, Path]:
    """Draws each plot that has figures. Returns their files by the key of the section, "" for all sections."""
    drawn = {}
    for key, name, draw in (("", "cost", _cost), ("pending", "growth", _growth), ("late", "late", _late)):
        with style.context(SETTINGS, after_reset=True):  # the user's own settings do not count
            figure = draw(summary)
            if figure is not None:
                drawn[key] = folder / f"{name}.svg"
                save(figure, drawn[key])
    return drawn


def save(figure: Figure, path: Path) -> None:
    """Writes the same file for the same figures."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    # Joins the lines of a path. The last step rounds to a hundredth of a point.
    text = re.sub(r"\s*\n(?=[MLQCzZ\"])", " ", buffer.getvalue())
    # Removes groups that are empty or have a single element. No element refers to them.
    text = re.sub(r"\n *<g id=\"\w+\"/>", "", text)
    text = re.sub(r"<g id=\"\w+\">\n *(<.*/>|<text.*</text>)\n *</g>", r"\1", text)
    system.write_text(path, re.sub(r"\d+\.\d{3,}", lambda digits: f"{float(digits[0]):.2f}", text))


def _colour(runner: Runner) -> str:
    return COLOURS.get(runner.name, "#9aa5b1")


def _weight(runner: Runner) -> str:
    return "bold" if runner.name == OURS else "normal"


def _figure(summary: Summary, height: float, title: str, more: str = "") -> Figure:
    """A figure with its title and, below it, the machine."""
    figure = Figure(figsize=(WIDTH, height))
    machine = summary.results.machine
    taken = [machine["cpu"], plural(machine["cores"], "core"), f"median of {plural(summary.rounds, 'round')}", more]
    figure.text(0.015, 1 - 0.14 / height, title, va="top", fontsize=12.5, fontweight="bold")
    figure.text(0.015, 1 - 0.40 / height, ", ".join(filter(None, taken)), va="top", color=MUTED)
    return figure


def _section(summary: Summary, key: str) -> Section | None:
    return next((section for section in summary.results.plan if section.key == key), None)


# --- Dots: the cost of each workload ----------------------------------------------------------------------------------

TITLES = {
    "churn": "Cancel + schedule, {0}: ns",
    "handoff": "Handoff, {0}: ns",
    "expire": "Schedule and run: ns",
    "touch": "Put off one of many: ns",
    "memory": "Memory: bytes per timeout",
    "far": "None due for minutes: ms per s",
}
HANDOFFS = ((1, RING), (2, RING))  # the tables have the others


def _cost(summary: Summary) -> Figure | None:
    sections = [section for section in map(partial(_section, summary), TITLES) if section]
    everyones = [(section, entry.config) for section in sections for entry in section.entries if entry.everyone]
    shown = [(config, summary.shown(section, config)) for section, config in everyones if _in_cost(config)]
    shown = [(config, runners) for config, runners in shown if runners]
    if not shown:
        return None
    columns = min(2, len(shown))
    rows = -(-len(shown) // columns)
    most = max(len(runners) for _, runners in shown)
    height = 0.75 + rows * (0.75 + 0.21 * most)
    figure = _figure(summary, height, "What a timeout costs", "tick 1 ms; CPU time, logarithmic; in parentheses: theirs / ours")
    grid = figure.subplots(rows, columns, squeeze=False)
    figure.subplots_adjust(0.19, 0.3 / height, 0.985, 1 - 0.98 / height, wspace=0.6, hspace=0.75 / (0.21 * most))
    for axes, (config, runners) in zip(grid.flat, shown):
        _dots(axes, summary, config, runners, most)
    for axes in grid.flat[len(shown) :]:
        axes.set_axis_off()
    return figure


def _in_cost(config: Config) -> bool:
    return config.tick_ms == 1 and (config.workload != "handoff" or (config.threads, config.pending) in HANDOFFS)


def _dots(axes: Any, summary: Summary, config: Config, runners: Sequence[Runner], most: int) -> None:
    """Draws the dots sorted by cost, runners without a figure last. Leaves room for `most` dots."""
    metric = main_metric(config.workload)
    found = [(runner, summary.value(runner.name, config, metric)) for runner in runners]
    sorted_ = sorted(found, key=lambda one: one[1].median if one[1] else float("inf"))
    positive = [value.median for _, value in found if value and value.median > 0] or [1.0]
    left, right = min(positive) / 1.6, max(positive)
    axes.set_xscale("log")
    axes.set_xlim(left, left * (right / left) ** 1.5)  # leaves room for the figure at the last dot
    axes.set_ylim(most - 0.4, -0.6)
    # A logarithmic axis has no zero, so a bar's length would tell nothing. Zero is a figure without a dot.
    dots = [(value.median, place, _colour(runner)) for place, (runner, value) in enumerate(sorted_) if value]
    if dots:
        at, places, colours = zip(*dots)
        axes.scatter(at, places, s=42, c=colours)
    for place, (runner, value) in enumerate(sorted_):
        if value:
            quotient = summary.ratio(runner.name, config, metric) if runner.name != OURS else None
            text = number(value.median) + (f" ({ratio(quotient)})" if quotient else "")
        else:
            text = summary.why_none(runner.name, config)
        at = (max(value.median, left) if value else left, place)
        font = {"fontweight": _weight(runner)} if value else {"color": MUTED, "style": "italic"}
        axes.annotate(text, at, xytext=(7, 0), textcoords="offset points", va="center", **font)
    factors = (1.0, 2.0, 5.0) if right < 10 * left else (1.0, 3.0) if right < 100 * left else (1.0,)
    axes.set_xticks([tick for tick in LogLocator(subs=factors).tick_values(left, right) if left <= tick <= 2 * right])
    axes.set_xticks([], minor=True)
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.grid(axis="both")
    axes.set_yticks(range(len(runners)), [runner.title for runner, _ in sorted_])
    axes.tick_params(axis="y", length=0)
    for (runner, _), tick in zip(sorted_, axes.get_yticklabels()):
        tick.set_fontweight(_weight(runner))
        tick.set_color(STRONG if runner.name == OURS else INK)
    axes.set_title(TITLES[config.workload].format(plural(config.threads or 1, "pair" if config.workload == "handoff" else "thread")))


# --- Lines: how the cost grows with threads and with pending timeouts -------------------------------------------------


VARIED = {"threads": "threads, logarithmic", "pending": "pending timeouts of one thread, logarithmic"}


def _growth(summary: Summary) -> Figure | None:
    panels: list[tuple[Section, list[Config]]] = []
    for section in summary.results.plan:
        for tick in sorted({config.tick_ms for config in section.configs if section.varies}):
            configs = [config for config in section.configs if config.tick_ms == tick]
            if summary.shown(section, *configs):
                panels.append((section, configs))
    if not panels:
        return None
    figure = _figure(summary, 3.8, "How the cost of cancel + schedule grows", "band: lowest to highest")
    grid = figure.subplots(1, len(panels), squeeze=False)
    figure.subplots_adjust(left=0.065, right=0.985, top=0.76, bottom=0.165, wspace=0.17)
    for axes, (section, configs) in zip(grid.flat, panels):
        _lines(axes, summary, section, configs)
    grid.flat[0].set_ylabel(main_metric(panels[0][0].workload).title)
    figure.legend(*grid.flat[-1].get_legend_handles_labels(), loc="upper right", handlelength=1.5)
    return figure


def _lines(axes: Any, summary: Summary, section: Section, configs: Sequence[Config]) -> None:
    metric = main_metric(section.workload)
    axes.set_xscale("log")
    xs: list[int] = [getattr(config, section.varies or "") for config in configs]
    for runner in summary.shown(section, *configs):
        values = [summary.value(runner.name, config, metric) for config in configs]
        points = [(x, value.median, value.low, value.high) for x, value in zip(xs, values) if value]
        if not points:
            continue
        across, medians, lows, highs = zip(*points)
        colour, width = _colour(runner), 2.4 if runner.name == OURS else 1.6
        axes.fill_between(across, lows, highs, color=colour, alpha=0.15, linewidth=0)
        axes.plot(across, medians, color=colour, marker="o", markersize=4, linewidth=width, label=runner.title)
    axes.set_ylim(0)
    axes.set_xticks(xs)
    axes.set_xticks([], minor=True)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.grid(axis="y")
    axes.set_xlabel(VARIED[section.varies or ""])
    axes.set_title(ticks(configs[0]).capitalize())


# --- Curves: lateness of tasks ---------------------------------------------------------------------------------------


def _late(summary: Summary) -> Figure | None:
    section = _section(summary, "late")
    config = section.configs[0] if section else Config("late")
    read = [(runner, summary.curve(runner.name, config)) for runner in summary.results.runners]
    curves = [(runner, percentiles) for runner, percentiles in read if percentiles]
    if not curves:
        return None
    figure = _figure(summary, 3.9, f"How long after its deadline a task starts, {ticks(config)}")
    axes = figure.subplots()
    figure.subplots_adjust(left=0.06, right=0.64, top=0.76, bottom=0.13)
    others = [runner for runner, _ in curves if runner.name not in (OURS, *SHORT_TICKS)]
    for runner, percentiles in curves:
        ours = runner not in others
        axes.plot(
            percentiles,
            range(0, 101),
            color=_colour(runner),
            linestyle="-" if ours else DASHES[others.index(runner) % len(DASHES)],
            linewidth=2.6 if ours else 1.7,
            zorder=4 if ours else 3,
            label=f"{runner.title}: {number(percentiles[50])} / {number(percentiles[99])} µs",
        )
    _late_scale(axes, [percentiles for _, percentiles in curves])
    legend = axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), title="p50 / p99", alignment="left")
    for text in legend.get_texts():
        text.set_fontweight("bold" if text.get_text().startswith((OURS, "ours,")) else "normal")
    return figure


def _late_scale(axes: Any, curves: Sequence[Sequence[float]]) -> None:
    axes.set_xlabel("microseconds after the deadline")
    medians = [percentiles[50] for percentiles in curves]
    # Medians of 100 to 2,500 µs, as with a tick of a millisecond, fit on a linear axis, which also shows early tasks.
    # With smaller medians, as without a tick, only a logarithmic axis shows all curves, but no early tasks.
    if max(medians) <= 2_500 and not any(0 < value < 100 for value in medians):
        # The legend has the figures of curves that leave the axis on the right.
        right = min(max(percentiles[99] for percentiles in curves) * 1.08, 5_000)
        left = min(percentiles[0] for percentiles in curves)
        axes.set_xlim(max(left * 1.05, -right) if left < 0 else 0, right)
        if left < 0:
            axes.axvline(0, color=INK, linewidth=1, zorder=2)
            axes.annotate("too early", (0, 96), xytext=(-6, 0), textcoords="offset points", ha="right", va="center")
    else:
        axes.set_xscale("log")
        least = max(1, min(percentiles[1] for percentiles in curves))  # a log axis has no zero
        axes.set_xlim(least, max(percentiles[-1] for percentiles in curves) * 1.1)
        axes.set_xlabel("microseconds after the deadline, logarithmic; tasks before it are left of the axis")
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.set_ylim(0, 101)
    axes.set_yticks([0, 25, 50, 75, 90, 99])
    axes.yaxis.set_major_formatter("{x:g} %")
    axes.grid(axis="both")
    axes.set_title("share of the tasks that have started")
