"""Subprocesses, files and errors."""

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
    """An error that ends the comparison: one line, exit status 1."""


class Interrupted(BaseException):
    """A signal asks this program to end. Not an Exception, so that no error handler catches it."""


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
    """Runs a program and ends it after `timeout` seconds. The outcome has its output until then."""
    start = time.monotonic()
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    try:
        # The child gets its own session: Ctrl-C then reaches only this program, and _end() also kills grandchildren.
        child = subprocess.Popen(command, **pipes, start_new_session=True, errors="replace")
    except OSError as error:
        return Outcome(127, "", f"{command[0]}: {error.strerror}", 0.0)
    try:
        out, err = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        out, err = _end(child)
        return Outcome(-1, out, err, time.monotonic() - start, timed_out=True)
    except BaseException:
        _end(child)
        raise
    return Outcome(child.returncode, out, err, time.monotonic() - start)


def _end(child: subprocess.Popen[str]) -> tuple[str, str]:
    """Ends the child and its own children. Returns their output."""
    out = err = ""
    try:
        _signal(child, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):  # it ignores SIGTERM
            out, err = child.communicate(timeout=GRACE_SECONDS)
    finally:  # also if another signal interrupts this program, and for processes that outlive the child
        _signal(child, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):  # it is stuck in the kernel
        out, err = child.communicate(timeout=GRACE_SECONDS)
    return out, err


def _signal(child: subprocess.Popen[str], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS refuses a group whose processes have ended
        os.killpg(child.pid, number)


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"cannot read {path}: {getattr(error, 'strerror', 'it is not UTF-8 text')}") from error


def write_text(path: Path, text: str) -> None:
    """Replaces a file as a whole. If that fails, the old file stays."""
    temporary = path.with_name(path.name + ".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise Failure(f"cannot write {path}: {error.strerror}") from error
