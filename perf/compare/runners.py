"""The programs that are compared: which there are, what they need, and how they are built."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

from . import files, process
from .errors import Failure
from .parsing import BadOutput, parse_description
from .plan import OURS
from .results import LeftOut, Runner

BUILD_SECONDS = 1200
DESCRIBE_SECONDS = 30
LOG_LINES = 15


@dataclass(frozen=True)
class Paths:
    root: Path
    build: Path
    cpp: Path  # the Meson build directory

    @property
    def peers(self) -> Path:
        return self.root / "perf" / "peers"

    @property
    def kept(self) -> Path:
        """Where goes what is not to be kept in the source tree."""
        return self.build / "compare-results"


@dataclass(frozen=True)
class Need:
    tool: str
    package: str
    hint: str


@dataclass(frozen=True)
class Program:
    name: str
    title: str
    needs: tuple[Need, ...]
    build: tuple[tuple[str, ...], ...]
    run: tuple[str, ...]
    warmup: int
    cross_thread: bool
    source: Path

    def missing(self) -> str:
        """One line on what is not here and what would bring it, "" if nothing is missing."""
        return "; ".join(_what_brings(need) for need in self.needs if need.tool and not shutil.which(need.tool))

    def not_built(self) -> str:
        """The same, where only the build could tell."""
        if not Path(self.run[0]).is_absolute() or Path(self.run[0]).exists():
            return ""
        brings = "; ".join(_what_brings(need) for need in self.needs)
        return "its program was not built" + (f": {brings}" if brings else "")


def _what_brings(need: Need) -> str:
    words = f"needs {need.tool or need.package}"
    if need.tool and need.package:
        words += f" (package {need.package})"
    return f"{words}: {need.hint}" if need.hint else words


def ours(paths: Paths) -> Program:
    binary = paths.cpp / "perf" / "workloads" / "workloads"
    return Program(OURS, OURS, (), (), (str(binary),), 0, True, paths.root)


def load_peers(paths: Paths) -> list[Program]:
    """Netty first, as the one that all is measured against; the others by name."""
    found = [_load(path, paths) for path in sorted(paths.peers.glob("**/runner.json"))]
    names = [program.name for program in found]
    twice = sorted({name for name in names if names.count(name) > 1 or name == OURS})
    if twice:
        raise Failure(f"two runners have the name {twice[0]}")
    return sorted(found, key=lambda program: (program.name != "netty", program.name))


def _load(path: Path, paths: Paths) -> Program:
    text = files.read_text(path)
    try:
        return parse_program(json.loads(text), path.parent, paths)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Failure(f"{path} is not a runner.json: {type(error).__name__}: {error}") from error


def parse_program(data: dict[str, Any], source: Path, paths: Paths) -> Program:
    places = {"{peers}": paths.peers, "{build}": paths.build / "peers", "{source}": source, "{cpp}": paths.cpp}

    def filled(words: Sequence[str]) -> tuple[str, ...]:
        return tuple(_fill(word, places) for word in words)

    return Program(
        name=data["name"],
        title=data["title"],
        needs=tuple(
            Need(need.get("tool") or "", need.get("package") or "", need.get("hint") or "")
            for need in data.get("needs", [])
        ),
        build=tuple(filled(command) for command in _commands(data.get("build", []))),
        run=filled(data["run"]),
        warmup=int(data.get("warmup", 0)),
        cross_thread=bool(data["cross_thread"]),
        source=source,
    )


def _commands(build: Sequence[str | Sequence[str]]) -> list[Sequence[str]]:
    """One command or several."""
    if build and all(isinstance(word, str) for word in build):
        return [[str(word) for word in build]]
    return [command for command in build if command]


def _fill(word: str, places: dict[str, Path]) -> str:
    for name, path in places.items():
        word = word.replace(name, str(path))
    return word


def prepare(
    programs: Sequence[Program], paths: Paths, say: Callable[[str], None]
) -> tuple[list[tuple[Program, Runner]], list[LeftOut]]:
    """Builds what can be built here. This library itself must be there."""
    ready, left_out = [], []
    for program in programs:
        try:
            ready.append((program, _prepare(program, paths, say)))
        except _NotHere as reason:
            if program.name == OURS:
                raise Failure(f"the runner of this library does not work: {reason}") from None
            say(f"left out: {program.title}: {reason}")
            left_out.append(LeftOut(program.name, program.title, str(reason).splitlines()[0]))
    return ready, left_out


class _NotHere(Exception):
    pass


def _prepare(program: Program, paths: Paths, say: Callable[[str], None]) -> Runner:
    missing = program.missing()
    if missing:
        raise _NotHere(missing)
    if program.build:
        say(f"building {program.title}")
        _build(program, paths)
    not_built = program.not_built()
    if not_built:
        raise _NotHere(not_built)
    asked = process.run([*program.run, "--describe"], DESCRIBE_SECONDS)
    if asked.timed_out:
        raise _NotHere(f"no answer to --describe within {DESCRIBE_SECONDS} s")
    if not asked.ok:
        raise _NotHere(f"--describe failed with status {asked.status}\n{tail(asked.err)}".rstrip())
    try:
        description = parse_description(asked.out)
    except BadOutput as error:
        raise _NotHere(f"--describe: {error}") from error
    return Runner(
        name=program.name, title=program.title, cross_thread=program.cross_thread, warmup=program.warmup, **description
    )


def _build(program: Program, paths: Paths) -> None:
    log = paths.build / "peers" / f"{program.name}.log"
    files.make_directory(log.parent)
    text = ""
    for command in program.build:
        outcome = process.run(command, BUILD_SECONDS, program.source)
        text += outcome.out + outcome.err
        files.write_text(log, text)
        if outcome.timed_out:
            raise _NotHere(f"its build took more than {BUILD_SECONDS} s")
        if not outcome.ok:
            raise _NotHere(f"its build failed, see build/peers/{log.name}\n{tail(text)}")


def tail(text: str, lines: int = LOG_LINES) -> str:
    return "\n".join("    " + line for line in text.rstrip().splitlines()[-lines:])
