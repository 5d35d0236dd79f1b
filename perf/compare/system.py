"""Programs and files, and what ends this program early, in words for whoever started it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

GRACE_SECONDS = 2.0


class WrongUsage(Exception):
    """A wrong argument: one line, exit status 2."""


class Failure(Exception):
    """Something that keeps the comparison from going on: one line, exit status 1."""


class Interrupted(BaseException):
    """A signal asked us to end. Not an Exception, so that nothing that handles errors swallows it."""


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str
    seconds: float
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        return self.status == 0 and not self.timed_out


def run(command: Sequence[str], timeout: float) -> Outcome:
    """Runs one program, for a limited time."""
    start = time.monotonic()
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    try:
        # In a session of its own, so that a Ctrl-C on the terminal comes to us alone, and that what a launcher script
        # starts ends with it.
        child = subprocess.Popen(command, **pipes, start_new_session=True, errors="replace")
    except OSError as error:
        return Outcome(127, "", f"{command[0]}: {error.strerror}", 0.0)
    try:
        out, err = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        _end(child)
        return Outcome(-1, "", "", time.monotonic() - start, timed_out=True)
    except BaseException:
        _end(child)
        raise
    return Outcome(child.returncode, out, err, time.monotonic() - start)


def _end(child: subprocess.Popen[str]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):  # the second one also for what outlived the child in its session
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):  # stuck in the kernel: nothing more can be done
            child.communicate(timeout=GRACE_SECONDS)


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"cannot read {path}: {getattr(error, 'strerror', 'it is not UTF-8 text')}") from error


def write_text(path: Path, text: str) -> None:
    """Whole or not at all: leaves the old file as it was if the new one cannot be written."""
    temporary = path.with_name(path.name + ".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise Failure(f"cannot write {path}: {error.strerror}") from error
