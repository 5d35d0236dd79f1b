"""The plots. Nothing outside of this package needs matplotlib."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..plan import Section
from ..summary import Summary


def available() -> bool:
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        return False
    return True


def draw_all(summary: Summary, folder: Path, suffix: str = ".svg") -> dict[str, Path]:
    """One for each section that has something to show."""
    from . import bars, lateness, lines, style

    drawers: dict[str, Callable[[Summary, Section], style.Figure | None]] = {
        "churn": bars.draw,
        "expire": bars.draw,
        "memory": bars.draw,
        "touch": bars.draw,
        "threads": lines.draw,
        "pending": lines.draw,
        "late": lateness.draw,
    }
    drawn = {}
    for section in summary.results.plan:
        if section.key not in drawers:
            continue
        with style.applied():
            figure = drawers[section.key](summary, section)
            if figure is not None:
                path = folder / (section.key + suffix)
                style.save(figure, path)
                drawn[section.key] = path
    return drawn
