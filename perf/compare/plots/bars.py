"""Bars: one panel for each configuration, one bar for each runner."""

from __future__ import annotations

import math
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from .. import formats
from ..grid import Notes
from ..metrics import Metric, main_metric
from ..plan import OURS, Config, Section, short_label
from ..report import rounds_done
from ..results import Runner
from ..summary import Summary
from . import style

# Inches.
WIDTH = 10.0
ABOVE, BELOW, BETWEEN, RIGHT = 1.0, 0.65, 0.95, 0.25
BAR = 0.27  # the height of each
NOTE = 0.19

Scale = tuple[float, float, bool]  # its ends, and whether it is logarithmic

LOG_FROM = 25.0  # the largest / the smallest

TITLES = {
    "churn": "Churn: cancel one timeout and schedule another",
    "expire": "Expire: schedule a timeout and run it",
    "memory": "Memory of a pending timeout",
    "touch": "Touch: put off the deadline of a pending timeout",
}


def draw(summary: Summary, section: Section) -> Figure | None:
    metric = main_metric(section.workload)
    configs = [config for config in section.configs if _medians(summary, config, metric)]
    if not configs:
        return None
    runners = [summary.shown(section, config) for config in configs]
    notes = Notes()
    titles = [[_title(summary, runner, config, notes) for runner in who] for config, who in zip(configs, runners)]
    names = style.room([title for some in titles for title in some]) + 0.1
    below = len(notes.lines()) * NOTE
    figure, panels = _panels([len(who) for who in runners], names, BELOW + below)
    # One scale for all, so that bars can be compared across panels.
    scale = _scale(
        [value for config in configs for value in _medians(summary, config, metric)],
        [value for config in configs for value in _highs(summary, config, metric)],
    )
    for axes, config, who, some in zip(panels, configs, runners, titles):
        _panel(axes, summary, config, metric, who, scale)
        _label(axes, config, metric, who, some, logarithmic=scale[2])
    style.head(
        figure, TITLES[section.key], summary.results, rounds_done(summary.results), "thin line: lowest to highest"
    )
    for line, words in enumerate(notes.lines()):
        bottom = 0.12 + below - (line + 1) * NOTE
        figure.text(0.15 / WIDTH, bottom / figure.get_figheight(), words, fontsize=9, color=style.MUTED)
    return figure


def _panels(bars: list[int], names: float, below: float) -> tuple[Figure, list[Any]]:
    """One for each number of bars, placed in inches, so that all bars are equally thick."""
    columns = min(2, len(bars))
    rows = [bars[start : start + columns] for start in range(0, len(bars), columns)]
    heights = [max(row) * BAR for row in rows]
    height = ABOVE + sum(heights) + BETWEEN * (len(rows) - 1) + below
    width = (WIDTH - RIGHT) / columns - names
    figure = Figure(figsize=(WIDTH, height))
    panels = []
    top = height - ABOVE
    for row, row_height in zip(rows, heights):
        for column, count in enumerate(row):
            left = names + column * (names + width)
            own = count * BAR
            panels.append(figure.add_axes((left / WIDTH, (top - own) / height, width / WIDTH, own / height)))
        top -= row_height + BETWEEN
    return figure, panels


def _medians(summary: Summary, config: Config, metric: Metric) -> list[float]:
    values = [summary.value(runner.name, config, metric) for runner in summary.results.runners]
    return [value.median for value in values if value is not None]


def _highs(summary: Summary, config: Config, metric: Metric) -> list[float]:
    values = [summary.value(runner.name, config, metric) for runner in summary.results.runners]
    return [max(value.median, value.high) for value in values if value is not None]


def _title(summary: Summary, runner: Runner, config: Config, notes: Notes) -> str:
    note = summary.note(runner.name, config)
    return f"{runner.title} {notes.mark(note)}" if note else runner.title


def _panel(axes: Any, summary: Summary, config: Config, metric: Metric, runners: list[Runner], scale: Scale) -> None:
    left, right, logarithmic = scale
    if logarithmic:
        axes.set_xscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(len(runners) - 0.45, -0.55)
    for place, runner in enumerate(runners):
        value = summary.value(runner.name, config, metric)
        ours = runner.name == OURS
        if value is None:
            reason = summary.why_none(runner.name, config)
            axes.annotate(
                reason,
                (0, place),
                xycoords=("axes fraction", "data"),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
                style="italic",
                color=style.MUTED,
            )
            continue
        shade = style.colour(runner.name, summary.results.runners)
        axes.barh(place, value.median - (left if logarithmic else 0), left=left, height=0.68, color=shade)
        axes.plot([value.low, value.high], [place, place], color=style.INK, linewidth=1, solid_capstyle="butt")
        ratio = summary.ratio(runner.name, config, metric)
        text = formats.number(value.median) + (f"  ({formats.ratio(ratio)})" if ratio and not ours else "")
        axes.annotate(
            text,
            (max(value.median, value.high), place),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            fontweight="bold" if ours else "normal",
            annotation_clip=False,
        )


def _label(
    axes: Any, config: Config, metric: Metric, runners: list[Runner], titles: list[str], logarithmic: bool
) -> None:
    axes.set_yticks(range(len(runners)), titles)
    for runner, tick in zip(runners, axes.get_yticklabels()):
        if runner.name == OURS:
            tick.set_color(style.STRONG)
            tick.set_fontweight("bold")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    if logarithmic:
        axes.xaxis.set_major_locator(LogLocator(10))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.set_title(short_label(config))
    axes.set_xlabel(metric.title + (", log scale" if logarithmic else ""), fontsize=9)


def _scale(medians: list[float], highs: list[float]) -> Scale:
    """The ends of the axis, with room for the figure at the longest line."""
    low, high = min(medians), max(highs)
    if low > 0 and max(medians) / low > LOG_FROM:
        start = 10 ** math.floor(math.log10(low * 0.7))
        return start, high * (high / start) ** 0.42, True
    return 0.0, high * 1.42 or 1.0, False
