"""How late tasks start: the share that has started, against the time since the deadline."""

from __future__ import annotations

from statistics import median
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter

from ..metrics import QUANTILES
from ..plan import OURS, Config, Section, ticks
from ..report import rounds_done
from ..results import OK, Runner
from ..summary import Summary
from . import style

WIDTH = 10.0
HEIGHT = 4.8
LINEAR_UP_TO = 2_500.0  # microseconds: if all medians are below, a linear axis shows them best
LEAST = 1.0  # microseconds: a log axis has no zero


def draw(summary: Summary, section: Section) -> Figure | None:
    config = section.configs[0]
    curves = [(runner, _quantiles(summary, runner, config)) for runner in summary.results.runners]
    found = [(runner, quantiles) for runner, quantiles in curves if quantiles]
    if not found:
        return None
    figure = Figure(figsize=(WIDTH, HEIGHT))
    names = style.room([f"{runner.title}: 1,234 / 12,345 µs" for runner, _ in found], 9.5) + 0.8
    figure.subplots_adjust(left=0.75 / WIDTH, right=1 - names / WIDTH, top=1 - 0.95 / HEIGHT, bottom=0.6 / HEIGHT)
    axes = figure.subplots()
    for runner, quantiles in found:
        _curve(axes, runner, quantiles, summary.results.runners)
    _scale(axes, found)
    _legend(axes)
    title = f"Late: how long after its deadline a task starts, {ticks(config)}"
    style.head(figure, title, summary.results, rounds_done(summary.results))
    return figure


def _quantiles(summary: Summary, runner: Runner, config: Config) -> list[float]:
    """Each quantile's median over the rounds."""
    rounds = [run.result["late_us"] for run in summary.runs(runner.name, config) if run.status == OK and run.result]
    return [median(values) for values in zip(*rounds)]


def _curve(axes: Any, runner: Runner, quantiles: list[float], everyone: list[Runner]) -> None:
    ours = runner.name == OURS
    percent = [index * 100 / (QUANTILES - 1) for index in range(QUANTILES)]
    axes.plot(
        quantiles,
        percent,
        color=style.colour(runner.name, everyone),
        linestyle=style.dashes(runner.name, everyone),
        linewidth=2.6 if ours else 1.7,
        zorder=4 if ours else 3,
        label=f"{runner.title}:  {_short(quantiles[500])} / {_short(quantiles[990])} µs",
    )


def _short(value: float) -> str:
    return f"{value:,.0f}"


def _scale(axes: Any, curves: list[tuple[Runner, list[float]]]) -> None:
    slowest = max(quantiles[500] for _, quantiles in curves)
    if slowest <= LINEAR_UP_TO:
        # What is beyond the right edge can be told from the legend.
        right = min(max(quantiles[990] for _, quantiles in curves) * 1.08, 2 * LINEAR_UP_TO)
        left = min(quantiles[0] for _, quantiles in curves)
        axes.set_xlim(max(left * 1.05, -right) if left < 0 else 0, right)
        axes.set_xlabel("microseconds after the deadline", fontsize=9.5)
        if left < 0:
            axes.axvline(0, color=style.INK, linewidth=1, zorder=2)
            axes.annotate(
                "too early",
                (0, 96),
                xytext=(-6, 0),
                textcoords="offset points",
                ha="right",
                va="center",
                fontsize=9,
                color=style.MUTED,
            )
    else:
        least = max(LEAST, min(quantiles[10] for _, quantiles in curves))
        axes.set_xscale("log")
        axes.set_xlim(least, max(quantiles[-1] for _, quantiles in curves) * 1.1)
        axes.xaxis.set_major_locator(LogLocator(10, subs=[1, 2, 5]))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("microseconds after the deadline, log scale", fontsize=9.5)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,g}"))
    axes.set_ylim(0, 101)
    axes.yaxis.set_major_locator(FixedLocator([0, 25, 50, 75, 90, 99]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g} %"))
    axes.grid(axis="both")
    axes.set_title("share of the tasks that have started")


def _legend(axes: Any) -> None:
    legend = axes.legend(
        loc="center left",
        bbox_to_anchor=(1.02, 0.5),
        fontsize=9.5,
        handlelength=2.6,
        labelspacing=0.8,
        title="p50 / p99",
        alignment="left",
    )
    first = legend.get_texts()[0]
    if first.get_text().startswith(OURS):
        first.set_fontweight("bold")
        first.set_color(style.STRONG)
