"""The programs to compare: their needs, builds and output."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

from . import system
from .metrics import CHECKED_WORKLOADS, CHECKSUMS, METRICS, QUANTILES, WAKEUPS, with_percentiles
from .plan import OURS, SHORT_TICKS, WORKLOADS, Config
from .results import LeftOut, Runner
from .system import Failure

BUILD_SECONDS = 1200
DESCRIBE_SECONDS = 30
LOG_LINES = 15


@dataclass(frozen=True)
class Paths:
    root: Path
    build: Path
    cpp: Path  # the Meson build directory
    brpc: Path | None = None  # where it is installed

    @property
    def kept(self) -> Path:
        """The folder of results that do not go into the source tree."""
        return self.build / "compare-results"

    def shown(self, path: Path) -> str:
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)


@dataclass(frozen=True)
class Need:
    tool: str = ""
    package: str = ""
    hint: str = ""
    option: str = ""  # of the command line, that names a folder

    def __str__(self) -> str:
        words = f"needs {self.option or self.tool or self.package}"
        words += f" (package {self.package})" if self.tool and self.package else ""
        return f"{words}: {self.hint}" if self.hint else words


@dataclass(frozen=True)
class Program:
    name: str
    title: str
    run: tuple[str, ...]
    needs: tuple[Need, ...] = ()
    build: tuple[tuple[str, ...], ...] = ()
    warmup: int = 0
    cross_thread: bool = True
    workloads: tuple[str, ...] = WORKLOADS  # that it runs; the others would show nothing new

    def missing(self) -> str:
        """Names the missing tools and options, "" if none is missing. parse_program() drops options that were given."""
        return "; ".join(
            str(need) for need in self.needs if need.option or (need.tool and not shutil.which(need.tool))
        )

    def not_built(self) -> str:
        """Returns "" if the program exists or is a command of PATH. Otherwise names what its build may have lacked."""
        if not Path(self.run[0]).is_absolute() or Path(self.run[0]).exists():
            return ""
        return ": ".join(filter(None, ["its program was not built", "; ".join(map(str, self.needs))]))


def load(paths: Paths) -> list[Program]:
    """Returns this library, the peers in the order of their file, and this library with short ticks. A peer takes the
    fields that it lacks from the one that it is `like`."""
    path = paths.root / "perf" / "peers" / "peers.json"
    workloads = str(paths.cpp / "perf" / "workloads" / "workloads")
    ours = Program(OURS, OURS, (workloads,))
    short = [
        Program(name, f"ours, tick {tick} µs", (workloads, "--timer", "hierarchical", "--tick-us", str(tick)), workloads=("late",))
        for name, tick in SHORT_TICKS.items()
    ]
    try:
        peers = {peer["name"]: peer for peer in json.loads(system.read_text(path))}
        whole = [{**peers.get(peer.pop("like", ""), {}), **peer} for peer in peers.values()]
        return [ours, *(parse_program(peer, paths) for peer in whole), *short]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Failure(f"{path} is not a list of peers: {type(error).__name__}: {error}") from error


def parse_program(data: dict[str, Any], paths: Paths) -> Program:
    folders = {"brpc": paths.brpc}
    places = {"peers": paths.root / "perf" / "peers", "build": paths.build / "peers", "cpp": paths.cpp, **folders}

    def filled(words: Sequence[str]) -> tuple[str, ...]:
        return tuple(word.format(name=data["name"], cores=os.cpu_count() or 1, **places) for word in words)

    needs = tuple(need for need in (Need(**need) for need in data.get("needs", [])) if not folders.get(need.option.lstrip("-")))
    build = tuple(map(filled, data.get("build", [])))
    workloads = tuple(data.get("workloads", WORKLOADS))
    return Program(**{**data, "run": filled(data["run"]), "needs": needs, "build": build, "workloads": workloads})


class _NotHere(Exception):
    pass


def prepare(
    programs: Sequence[Program], paths: Paths, say: Callable[[str], None]
) -> tuple[list[tuple[Program, Runner]], list[LeftOut]]:
    """Builds all programs that this machine can build. Fails only if this library does not work, or if a log cannot be
    written."""
    ready, left_out = [], []
    built: set[tuple[str, ...]] = set()
    for program in programs:
        try:
            _build(program, paths, built, say)
            ready.append((program, _asked(program)))
        except _NotHere as reason:
            if program.name == OURS:
                raise Failure(f"the runner of this library does not work: {reason}") from None
            say(f"left out: {program.title}: {reason}")
            left_out.append(LeftOut(program.name, program.title, str(reason).splitlines()[0]))
    return ready, left_out


def _build(program: Program, paths: Paths, built: set[tuple[str, ...]], say: Callable[[str], None]) -> None:
    if program.missing():
        raise _NotHere(program.missing())
    log, text = paths.build / "peers" / f"{program.name}.log", ""
    for command in program.build:
        if command in built:  # by another peer
            continue
        if not text:
            say(f"building {program.title}")
        outcome = system.run(command, BUILD_SECONDS)
        text += f"{' '.join(command)}\n{outcome.out}{outcome.err}"
        system.write_text(log, text)
        if not outcome.ok:
            how = f"took more than {BUILD_SECONDS} s" if outcome.timed_out else "failed"
            raise _NotHere(f"its build {how}, see {paths.shown(log)}\n{_tail(text)}")
        built.add(command)
    if program.not_built():
        raise _NotHere(program.not_built())


def _tail(text: str) -> str:
    return "\n".join("    " + line for line in text.rstrip().splitlines()[-LOG_LINES:])


def _asked(program: Program) -> Runner:
    asked = system.run([*program.run, "--describe"], DESCRIBE_SECONDS)
    if not asked.ok:
        how = f"took more than {DESCRIBE_SECONDS} s" if asked.timed_out else f"failed with status {asked.status}"
        raise _NotHere(f"--describe {how}\n{_tail(asked.err)}".rstrip())
    try:
        said = parse_object(asked.out)
    except BadOutput as error:
        raise _NotHere(f"--describe: {error}") from error
    version, runtime = (str(said.get(key) or "unknown") for key in ("version", "runtime"))
    return Runner(program.name, program.title, version, runtime, program.cross_thread, program.warmup, program.workloads)


# --- Their output -----------------------------------------------------------------------------------------------------


class BadOutput(Exception):
    pass


def parse_object(output: str) -> dict[str, Any]:
    """Returns the only object in the output. A runtime may print other lines."""
    lines = [line for line in output.splitlines() if line.startswith("{")]
    if len(lines) != 1:
        raise BadOutput(f"{len(lines)} objects instead of 1")
    try:
        found: dict[str, Any] = json.loads(lines[0])
    except ValueError as error:
        raise BadOutput(f"a line that is not JSON: {lines[0][:60]}") from error
    return found


def parse_round(output: str, config: Config) -> dict[str, Any]:
    """Returns the figures, or an object with `unsupported`. Checks the options of `config` that a runner prints."""
    result = parse_object(output)
    if result.get("unsupported"):
        return result
    for name in ("workload", "threads", "tick_ms", "pending", "count"):
        asked, said = getattr(config, name), result.get(name)
        if asked is not None and said != asked:
            raise BadOutput(f"ran with {name} {said} instead of {asked}")
    quantiles = result.get("late_us")
    if config.workload == "late":
        if not isinstance(quantiles, list) or len(quantiles) != QUANTILES or not all(map(_is_number, quantiles)):
            raise BadOutput(f"late_us is not {QUANTILES} numbers")
        result = with_percentiles(result)
    for metric in METRICS[config.workload]:
        try:
            value = metric.read(result)
        except (KeyError, TypeError, ValueError):
            value = math.nan
        # Wake-ups are None on systems that do not count them per thread.
        if not (_is_number(value) or value is None and metric is WAKEUPS):
            raise BadOutput(f"no figure for {metric.title}")
    missing = [key for key in CHECKSUMS if config.workload in CHECKED_WORKLOADS and result.get(key) is None]
    if missing:
        raise BadOutput(f"no {', '.join(missing)}")
    return result


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
