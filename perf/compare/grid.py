"""A table, as aligned text and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


class Notes:
    """Footnotes, each text once."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def mark(self, text: str) -> str:
        if text not in self._texts:
            self._texts.append(text)
        return str(self._texts.index(text) + 1).translate(SUPERSCRIPTS)

    def lines(self) -> list[str]:
        return [f"{self.mark(text)} {text}" for text in self._texts]


@dataclass
class Grid:
    """A row of one cell is a heading within the table."""

    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)
    words: frozenset[int] = frozenset([0])  # the columns that hold words; the others hold figures


def _widths(grid: Grid) -> list[int]:
    full = [row for row in [grid.columns, *grid.rows] if len(row) == len(grid.columns)]
    return [max(len(row[column]) for row in full) for column in range(len(grid.columns))]


def _padded(row: Sequence[str], widths: Sequence[int], words: frozenset[int]) -> list[str]:
    return [
        cell.ljust(width) if column in words else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(row, widths))
    ]


def text(grid: Grid, indent: str = "  ") -> str:
    widths = _widths(grid)
    lines = []
    for row in [grid.columns, *grid.rows]:
        cells = row if len(row) == 1 else _padded(row, widths, grid.words)
        lines.append((indent + "  ".join(cells)).rstrip())
    return "\n".join(lines)


def _escaped(row: Sequence[str]) -> list[str]:
    return [cell.replace("|", "\\|") for cell in row]


def markdown(grid: Grid) -> str:
    safe = Grid(_escaped(grid.columns), [_escaped(row) for row in grid.rows], grid.words)
    widths = [max(width, 4) for width in _widths(safe)]
    rule = ["-" * width if column in grid.words else "-" * (width - 1) + ":" for column, width in enumerate(widths)]
    rows = [_padded(safe.columns, widths, grid.words), rule]
    rows += [_padded(row, widths, grid.words) for row in safe.rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
