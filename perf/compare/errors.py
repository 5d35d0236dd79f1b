"""What ends the program early, in words for whoever started it."""

from __future__ import annotations


class WrongUsage(Exception):
    """A wrong argument: one line, exit status 2."""


class Failure(Exception):
    """Something that keeps the comparison from going on: one line, exit status 1."""


class Interrupted(BaseException):
    """A signal asked us to end. Not an Exception, so that nothing that handles errors swallows it."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.signal_number = signal_number
