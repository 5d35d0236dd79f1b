"""Writing files whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from .errors import Failure


def make_directory(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failure(f"cannot make the folder {path}: {error.strerror}") from error


def read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Failure(f"cannot read {path}: it is not UTF-8 text") from error


def write(path: Path, content: bytes) -> None:
    """Leaves the old file as it was if the new one cannot be written."""
    make_directory(path.parent)
    temporary = path.with_name(path.name + ".new")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise Failure(f"cannot write {path}: {error.strerror}") from error


def write_text(path: Path, text: str) -> None:
    write(path, text.encode("utf-8"))


def read_line(path: str) -> str:
    """The first line of a file of the system, "" if there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return ""
