"""Lines: how the cost changes with the number of threads or of pending timeouts."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from ..metrics import Metric, main_metric
from ..plan import OURS, Config, Section, ticks
from ..report import rounds_done
from ..results import Runner
from ..summary import Spread, Summary
from . import style

# Inches.
WIDTH = 10.0
HEIGHT = 4.3
ABOVE, BELOW, LEFT = 1.05, 0.6, 0.72

LABEL = 0.055  # of the height of a panel, for one label

TITLES = {
    "threads": "Churn against the number of threads",
    "pending": "Churn against the number of pending timeouts",
}
X_LABELS = {"threads": "threads, each cancels and schedules", "pending": "pending timeouts"}

Line = tuple[Runner, list[tuple[int, Spread]]]


def draw(summary: Summary, section: Section) -> Figure | None:
    metric = main_metric(section.workload)
    tick_lengths = sorted({config.tick_ms for config in section.configs})
    panels = [[config for config in section.configs if config.tick_ms == tick] for tick in tick_lengths]
    panels = [configs for configs in panels if _lines(summary, section, configs, metric)]
    if not panels:
        return None
    figure = Figure(figsize=(WIDTH, HEIGHT))
    # The names stand at the right ends of the lines.
    shown = [runner for configs in panels for runner in summary.shown(section, *configs)]
    names = style.room([f"{runner.title} 1,234" for runner in shown], 9) + 0.15
    width = WIDTH / len(panels)
    for place, configs in enumerate(panels):
        left, across = place * width + LEFT, width - LEFT - names
        box = (left / WIDTH, BELOW / HEIGHT, across / WIDTH, (HEIGHT - ABOVE - BELOW) / HEIGHT)
        _panel(figure.add_axes(box), summary, section, configs, metric)
    style.head(figure, TITLES[section.key], summary.results, rounds_done(summary.results), "band: lowest to highest")
    return figure


def _lines(summary: Summary, section: Section, configs: list[Config], metric: Metric) -> list[Line]:
    lines = []
    for runner in summary.shown(section, *configs):
        values = [
            (getattr(config, section.varies or ""), summary.value(runner.name, config, metric)) for config in configs
        ]
        points = [(x, value) for x, value in values if value is not None]
        if points:
            lines.append((runner, points))
    return lines


def _panel(axes: Any, summary: Summary, section: Section, configs: list[Config], metric: Metric) -> None:
    everyone = summary.results.runners
    lines = _lines(summary, section, configs, metric)
    axes.set_xscale("log")
    for runner, points in lines:
        _line(axes, runner, points, everyone)
    xs = sorted({x for _, points in lines for x, _ in points})
    axes.set_xlim(xs[0] * 0.93, xs[-1] * 1.04)
    top = max(value.high for _, points in lines for _, value in points)
    axes.set_ylim(0, top * 1.08)
    _name_lines(axes, lines, everyone, top * 1.08)
    axes.xaxis.set_major_locator(FixedLocator(xs))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{round(x):,}"))
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,g}"))
    axes.grid(axis="y")
    axes.set_xlabel(X_LABELS[section.key], fontsize=9.5)
    axes.set_title(f"{metric.title}, {ticks(configs[0])}")


def _line(axes: Any, runner: Runner, points: list[tuple[int, Spread]], everyone: list[Runner]) -> None:
    shade = style.colour(runner.name, everyone)
    xs = [x for x, _ in points]
    ours = runner.name == OURS
    front = 4 if ours else 3
    axes.fill_between(
        xs,
        [value.low for _, value in points],
        [value.high for _, value in points],
        color=shade,
        alpha=0.15,
        linewidth=0,
        zorder=front - 1,
    )
    axes.plot(
        xs,
        [value.median for _, value in points],
        color=shade,
        marker="o",
        markersize=5 if ours else 4,
        linewidth=2.4 if ours else 1.6,
        zorder=front,
    )


def _name_lines(axes: Any, lines: list[Line], everyone: list[Runner], top: float) -> None:
    """At their right ends, in their colours."""
    ends = [points[-1][1].median for _, points in lines]
    for (runner, points), place in zip(lines, style.apart(ends, top * LABEL)):
        x, value = points[-1]
        axes.annotate(
            f"{runner.title} {value.median:,.0f}",
            (x, place),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            color=style.colour(runner.name, everyone),
            fontweight="bold" if runner.name == OURS else "normal",
            annotation_clip=False,
        )
