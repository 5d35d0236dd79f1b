"""Runs one program, for a limited time."""

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


def run(command: Sequence[str], timeout: float, directory: Path | None = None) -> Outcome:
    start = time.monotonic()
    try:
        # In a session of its own, so that a Ctrl-C on the terminal comes to us alone, and that what a launcher script
        # starts ends with it.
        child = subprocess.Popen(
            list(command),
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
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
    return Outcome(child.returncode, _text(out), _text(err), time.monotonic() - start)


def _text(output: bytes) -> str:
    return output.decode("utf-8", errors="replace")


def _end(child: subprocess.Popen[bytes]) -> None:
    _signal(child, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.communicate(timeout=GRACE_SECONDS)
    _signal(child, signal.SIGKILL)  # also what outlived the child in its session
    try:
        child.communicate(timeout=GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        pass  # stuck in the kernel; nothing more can be done


def _signal(child: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)
