"""All that was measured, and its file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from . import files
from .errors import Failure
from .plan import Config, Entry, Section

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

    def runner(self, name: str) -> Runner | None:
        return next((runner for runner in self.runners if runner.name == name), None)


def to_json(results: Results) -> str:
    """One line for each run, so that the file can be read and searched by hand."""
    head: dict[str, Any] = {"format": FORMAT}
    head.update(
        (key, value) for key, value in vars(results).items() if key not in ("runners", "left_out", "plan", "runs")
    )
    head["runners"] = [asdict(runner) for runner in results.runners]
    head["left_out"] = [asdict(runner) for runner in results.left_out]
    head["plan"] = [_section_to_json(section) for section in results.plan]
    lines = [f" {json.dumps(key)}: {_dump(value)}," for key, value in head.items()]
    runs = ",\n".join("  " + json.dumps(_run_to_json(run), separators=(",", ":")) for run in results.runs)
    return "{\n" + "\n".join(lines) + '\n "runs": [\n' + runs + "\n ]\n}\n"


def _dump(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join("  " + json.dumps(item, ensure_ascii=False) for item in value) + "\n ]"
    return json.dumps(value, ensure_ascii=False)


def _section_to_json(section: Section) -> dict[str, Any]:
    entries = [{"config": entry.config.to_json(), "everyone": entry.everyone} for entry in section.entries]
    return {**vars(section), "entries": entries}


def _run_to_json(run: Run) -> dict[str, Any]:
    return {**vars(run), "config": run.config.to_json(), "seconds": round(run.seconds, 3)}


def from_json(text: str) -> Results:
    data = json.loads(text)
    if data.pop("format", None) != FORMAT:
        raise ValueError(f"not of format {FORMAT}")
    data["runners"] = [Runner(**runner) for runner in data["runners"]]
    data["left_out"] = [LeftOut(**runner) for runner in data["left_out"]]
    data["plan"] = [_section_from_json(section) for section in data["plan"]]
    data["runs"] = [Run(**{**run, "config": Config(**run["config"])}) for run in data["runs"]]
    return Results(**data)


def _section_from_json(data: dict[str, Any]) -> Section:
    entries = tuple(Entry(Config(**entry["config"]), entry["everyone"]) for entry in data["entries"])
    return Section(**{**data, "entries": entries})


def save(results: Results, path: Path) -> None:
    files.write_text(path, to_json(results))


def load(path: Path) -> Results:
    text = files.read_text(path)
    try:
        return from_json(text)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Failure(f"{path} is not a result of this program: {error}") from error
