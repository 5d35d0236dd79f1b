"""Numbers as they are shown."""

from __future__ import annotations

from .summary import Spread


def number(value: float) -> str:
    """Three digits that count; more before the point are kept."""
    if value == 0:
        return "0"
    size = abs(value)
    digits = 0 if size >= 99.95 else 1 if size >= 9.995 else 2
    text = f"{value:,.{digits}f}"
    return text if float(text.replace(",", "")) != 0 else f"{value:.1g}"


def _factor(value: float) -> str:
    if value >= 9.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 0.995 else f"{value:.2f}"


def ratio(value: Spread) -> str:
    return _factor(value.median) + "×"


def spread(value: Spread) -> str:
    low, high = _factor(value.low), _factor(value.high)
    return low if low == high else f"{low}–{high}"


def ratio_and_spread(value: Spread) -> str:
    return f"{ratio(value)} ({spread(value)})"
