"""What all plots have in common: one colour for each runner, and the same file for the same figures."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from .. import files
from ..plan import OURS
from ..results import Results, Runner

__all__ = ["Figure"]

INK = "#1f2328"
MUTED = "#656d76"
GRID = "#e3e6ea"
STRONG = "#0b57d0"

COLOURS = {
    OURS: STRONG,
    "netty": "#c77f2c",
    "dubbo": "#9678b6",
    "kafka": "#5f6b7a",
    "go-zero": "#4a9c97",
    "tokio": "#b8626f",
    "asio": "#86a04e",
    "libuv": "#a1887f",
}
SPARE_COLOURS = ("#9aa5b1", "#7f9bb3", "#b0a160", "#a3a3a3")
DASHES = ("-", "--", "-.", (0, (1, 1.2)), (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (3, 1)))

SETTINGS: dict[str, Any] = {
    "svg.fonttype": "path",
    "svg.hashsalt": "hashed_wheel_timer",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "axes.facecolor": "white",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.titlepad": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
}


@contextmanager
def applied() -> Iterator[None]:
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # not what the user has set up for other plots
        matplotlib.rcParams.update(SETTINGS)
        yield


def save(figure: Figure, path: Path) -> None:
    buffer = io.BytesIO()
    kind = path.suffix.lstrip(".")
    metadata = {"Date": None, "Creator": None} if kind == "svg" else {}
    figure.savefig(buffer, format=kind, metadata=metadata, dpi=110)
    files.write(path, buffer.getvalue())


def colour(name: str, runners: Sequence[Runner]) -> str:
    if name in COLOURS:
        return COLOURS[name]
    unknown = [runner.name for runner in runners if runner.name not in COLOURS]
    return SPARE_COLOURS[unknown.index(name) % len(SPARE_COLOURS)]


def dashes(name: str, runners: Sequence[Runner]) -> Any:
    """Lines can be told apart without their colours; ours is solid."""
    others = [runner.name for runner in runners if runner.name != OURS]
    return "-" if name == OURS else DASHES[1 + others.index(name) % (len(DASHES) - 1)]


def head(figure: Figure, title: str, results: Results, rounds: int, more: str = "") -> None:
    """The title, and under it what the figures were taken on. In inches, so that it looks the same on all."""
    height = figure.get_figheight()
    machine = results.machine
    cores = f"{machine['cores']} core" + ("" if machine["cores"] == 1 else "s")
    below = f"median of {rounds} rounds" if rounds != 1 else "1 round"
    below = ", ".join(part for part in (machine["cpu"], cores, below, more) if part)
    figure.text(0.15 / figure.get_figwidth(), 1 - 0.14 / height, title, va="top", fontsize=13, fontweight="bold")
    figure.text(0.15 / figure.get_figwidth(), 1 - 0.42 / height, below, va="top", fontsize=9, color=MUTED)


def room(texts: Sequence[str], size: float = 10.0) -> float:
    """Inches that the longest of these takes at most."""
    return max(map(len, texts), default=0) * size * 0.0089


def apart(positions: Sequence[float], gap: float) -> list[float]:
    """Positions of labels, moved as little as it takes to have them `gap` apart."""
    order = sorted(range(len(positions)), key=lambda index: positions[index])
    groups: list[list[int]] = []
    centres: list[float] = []
    for index in order:
        groups.append([index])
        centres.append(positions[index])
        while len(groups) > 1:
            room = gap * (len(groups[-2]) + len(groups[-1])) / 2
            if centres[-1] - centres[-2] >= room:
                break
            members = groups.pop(-2) + groups.pop()
            groups.append(members)
            centres.pop()
            centres[-1] = sum(positions[member] for member in members) / len(members)
    result = [0.0] * len(positions)
    for group, centre in zip(groups, centres):
        for place, index in enumerate(group):
            result[index] = centre + gap * (place - (len(group) - 1) / 2)
    return result
