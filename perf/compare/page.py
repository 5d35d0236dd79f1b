"""Puts the results into the page, between its markers."""

from __future__ import annotations

from pathlib import Path

from . import files
from .errors import Failure

BEGIN = "<!-- results: begin -->"
END = "<!-- results: end -->"


def replaced(text: str, content: str) -> str:
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < begin or text.count(BEGIN) > 1 or text.count(END) > 1:
        raise ValueError(f"needs {BEGIN} and {END} once each, in this order")
    return f"{text[: begin + len(BEGIN)]}\n\n{content.strip()}\n\n{text[end:]}"


def update(path: Path, content: str) -> None:
    text = files.read_text(path) if path.exists() else f"{BEGIN}\n{END}\n"
    try:
        files.write_text(path, replaced(text, content))
    except ValueError as error:
        raise Failure(f"{path} was left as it is: it {error}") from error
