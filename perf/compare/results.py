"""All that was measured, and its file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from . import system
from .plan import WORKLOADS, Config, Entry, Section

FORMAT = 1

OK = "ok"
UNSUPPORTED = "unsupported"
FAILED = "failed"
TIMED_OUT = "timed out"


@dataclass(frozen=True)
class Runner:
    name: str
    title: str
    version: str
    runtime: str
    cross_thread: bool
    warmup: int
    workloads: tuple[str, ...] = WORKLOADS


@dataclass(frozen=True)
class LeftOut:
    name: str
    title: str
    reason: str


@dataclass(frozen=True)
class Run:
    runner: str
    config: Config
    round: int
    status: str
    seconds: float
    message: str = ""
    result: dict[str, Any] | None = None

    @property
    def failed(self) -> bool:
        return self.status in (FAILED, TIMED_OUT)


@dataclass
class Results:
    date: str
    command: list[str]
    commit: str
    dirty: bool
    machine: dict[str, Any]
    compiler: str
    rounds: int
    quick: bool
    whole: bool  # all workloads and all peers were asked for
    runners: list[Runner]
    left_out: list[LeftOut]
    plan: list[Section]
    finished: bool = False
    runs: list[Run] = field(default_factory=list)

    def title(self, name: str) -> str:
        return next((runner.title for runner in self.runners if runner.name == name), name.capitalize())


def save(results: Results, path: Path) -> None:
    """One line for each run, so that the file can be read and searched by hand."""
    head = {"format": FORMAT, **asdict(results)}
    runs = ",\n".join("  " + json.dumps(run, separators=(",", ":")) for run in head.pop("runs"))
    begin = json.dumps(head, indent=1, ensure_ascii=False).removesuffix("\n}")
    system.write_text(path, f'{begin},\n "runs": [\n{runs}\n ]\n}}\n')


def load(path: Path) -> Results:
    text = system.read_text(path)
    try:
        data = json.loads(text)
        if data.pop("format", None) != FORMAT:
            raise ValueError(f"not of format {FORMAT}")
        data["runners"] = [Runner(**{**runner, "workloads": tuple(runner.get("workloads", WORKLOADS))}) for runner in data["runners"]]
        data["left_out"] = [LeftOut(**runner) for runner in data["left_out"]]
        data["runs"] = [Run(**{**run, "config": Config(**run["config"])}) for run in data["runs"]]
        for section in data["plan"]:
            section["entries"] = tuple(Entry(Config(**one["config"]), one["everyone"]) for one in section["entries"])
        data["plan"] = [Section(**section) for section in data["plan"]]
        return Results(**data)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise system.Failure(f"{path} is not a result of this program: {error}") from error
