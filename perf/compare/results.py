"""The results of a run, and their file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from . import system
from .metrics import CURVE, METRICS
from .plan import WORKLOADS, Config, Entry, Section, label

FORMAT = 2

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
    message: str = ""
    result: dict[str, Any] | None = None

    @property
    def failed(self) -> bool:
        return self.status in (FAILED, TIMED_OUT)


@dataclass(frozen=True)
class Difference:
    """A runner did other work than the others."""

    runner: str
    config: Config
    round: int
    detail: str  # "fired 5 instead of 6"

    def __str__(self) -> str:
        return f"{label(self.config)}, round {self.round}: {self.runner}: {self.detail}"


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
    unequal: list[Difference] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)

    def title(self, name: str) -> str:
        return next((runner.title for runner in self.runners if runner.name == name), name.capitalize())


# --- The file ---------------------------------------------------------------------------------------------------------


def save(results: Results, path: Path) -> None:
    """Stores the figures that the report and the plots need: a line for each runner and configuration, with the
    figures of its rounds.

    Of the curve of `late` the file has the medians of the rounds. It has no checksums: `unequal` is their result.
    """
    head = {"format": FORMAT, **{name: value for name, value in vars(results).items() if not isinstance(value, list)}}
    head["command"] = results.command
    lists = {
        "runners": map(asdict, results.runners),
        "left_out": map(asdict, results.left_out),
        "plan": [_section(section) for section in results.plan],
        "unequal": [{**asdict(one), "config": _config(one.config)} for one in results.unequal],
        "rows": _rows(results.runs),
    }
    parts = [f' "{key}": {_json(value)}' for key, value in head.items()]
    for key, values in lists.items():
        lines = ",\n".join("  " + _json(value) for value in values)
        parts.append(f' "{key}": [\n{lines}\n ]' if lines else f' "{key}": []')
    system.write_text(path, "{\n" + ",\n".join(parts) + "\n}\n")


def load(path: Path) -> Results:
    text = system.read_text(path)
    try:
        data = json.loads(text)
        if data.pop("format", None) != FORMAT:
            raise ValueError(f"not of format {FORMAT}")
        data["runners"] = [Runner(**{**runner, "workloads": tuple(runner["workloads"])}) for runner in data["runners"]]
        data["left_out"] = [LeftOut(**runner) for runner in data["left_out"]]
        data["plan"] = [_loaded_section(section) for section in data["plan"]]
        data["unequal"] = [Difference(**{**one, "config": Config(**one["config"])}) for one in data["unequal"]]
        data["runs"] = [run for row in data.pop("rows") for run in _runs(row)]
        return Results(**data)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise system.Failure(f"{path} is not a result of this program: {error}") from error


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _config(config: Config) -> dict[str, Any]:
    """The fields that are not at their defaults."""
    default = Config(config.workload)
    return {key: value for key, value in asdict(config).items() if key == "workload" or value != getattr(default, key)}


def _section(section: Section) -> dict[str, Any]:
    entries = [{**_config(entry.config), "everyone": entry.everyone} for entry in section.entries]
    return {**asdict(section), "entries": entries}


def _loaded_section(data: Mapping[str, Any]) -> Section:
    def entry(everyone: bool, **config: Any) -> Entry:
        return Entry(Config(**config), everyone)

    return Section(**{**data, "entries": tuple(entry(**one) for one in data["entries"])})


def _rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """One row for each runner, configuration and outcome."""
    groups: dict[tuple[str, Config, str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.runner, run.config, run.status, run.message), []).append(run)
    rows = []
    for (runner, config, status, message), group in groups.items():
        row: dict[str, Any] = {"runner": runner, "config": _config(config), "rounds": [run.round for run in group]}
        found = [run.result for run in group if run.result is not None]
        if status == OK:
            row |= {metric.key: [result[metric.key] for result in found] for metric in METRICS[config.workload]}
            if config.workload == "late":
                row[CURVE] = [round(median(values), 3) for values in zip(*(result[CURVE] for result in found))]
            if notes := [result["note"] for result in found if result.get("note")]:
                row["note"] = notes[0]
        else:
            row |= {"status": status, "message": message}
        rows.append(row)
    return rows


def _runs(row: dict[str, Any]) -> list[Run]:
    runner, config, rounds = row["runner"], Config(**row["config"]), row["rounds"]
    if "status" in row:
        return [Run(runner, config, number, row["status"], row["message"]) for number in rounds]
    keys = [metric.key for metric in METRICS[config.workload]]
    same = {key: row[key] for key in (CURVE, "note") if key in row}
    figures = zip(rounds, *(row[key] for key in keys), strict=True)
    return [Run(runner, config, number, OK, "", {**dict(zip(keys, values)), **same}) for number, *values in figures]
