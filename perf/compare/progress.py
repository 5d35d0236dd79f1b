"""One line that tells what runs, how much is done, and how long the rest will take."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from typing import TextIO

from .plan import Config, Step, label

QUIET_SECONDS = 15.0  # between two lines where they cannot be rewritten


class Clock:
    """Estimates how long steps take: as long as the same one took before, or as guessed, made better by how far the
    guesses were off so far."""

    def __init__(self, warmups: dict[str, int]) -> None:
        self._warmups = warmups
        self._measured: dict[tuple[str, Config], list[float]] = {}
        self._taken = 0.0
        self._guessed = 0.0

    def _guess(self, step: Step) -> float:
        return step.config.guessed_seconds(self._warmups.get(step.runner, 0))

    def took(self, step: Step, seconds: float) -> None:
        self._measured.setdefault((step.runner, step.config), []).append(seconds)
        self._taken += seconds
        self._guessed += self._guess(step)

    def estimate(self, step: Step) -> float:
        measured = self._measured.get((step.runner, step.config))
        if measured:
            return sum(measured) / len(measured)
        scale = self._taken / self._guessed if self._guessed > 0 else 1.0
        return self._guess(step) * scale

    def left(self, steps: Sequence[Step]) -> float:
        return sum(map(self.estimate, steps))


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min"


class Progress:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self._last: float | None = None

    def show(self, step: Step, title: str, rounds: int, done: float, left: float) -> None:
        # What matters most comes first: a narrow terminal cuts the end off.
        line = f"{done:4.0%}, {duration(left)} left, round {step.round} of {rounds}: {title}: {label(step.config)}"
        if self._terminal:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r{line[:width]:<{width}}")
            self._stream.flush()
        elif self._last is None or time.monotonic() - self._last >= QUIET_SECONDS:
            self._last = time.monotonic()
            print(line, file=self._stream, flush=True)

    def clear(self) -> None:
        if self._terminal:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r{'':{width}}\r")
            self._stream.flush()

    def say(self, text: str) -> None:
        self.clear()
        print(text, file=self._stream, flush=True)
