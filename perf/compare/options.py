"""The command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from .errors import WrongUsage
from .plan import WORKLOADS

MIN_ROUNDS = 5


@dataclass(frozen=True)
class Options:
    workloads: list[str]
    peers: list[str] | None  # None: all
    rounds: int
    quick: bool
    sweep_all: bool
    timeout: float
    output: Path | None
    listing: bool
    render: Path | None
    build: Path | None
    cpp: Path | None

    @property
    def whole(self) -> bool:
        return not self.quick and self.peers is None and set(self.workloads) == set(WORKLOADS)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise WrongUsage(message)


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise argparse.ArgumentTypeError("names separated by commas are needed")
    return list(dict.fromkeys(names))


def _workloads(text: str) -> list[str]:
    names = _names(text)
    unknown = [name for name in names if name not in WORKLOADS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no such workload: {unknown[0]}; there are {', '.join(WORKLOADS)}")
    return [name for name in WORKLOADS if name in names]


def _rounds(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text} is not a number from {MIN_ROUNDS} to 1000 (from 1 with --quick)")
    return int(text)


def _timeout(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds from 1 to 86400")
    return seconds


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="./run compare",
        allow_abbrev=False,
        description="Runs the workloads of perf/README.md on this library and on other timers in turn, and writes "
        "tables and plots. A run of all workloads and all peers also writes perf/results/, docs/performance.md and "
        "docs/performance/; any other leaves its files in build/compare-results/.",
    )
    add = parser.add_argument
    add("--workloads", type=_workloads, default=list(WORKLOADS), metavar="NAMES", help="only these, e.g. churn,expire")
    add("--peers", type=_names, metavar="NAMES", help="only these beside this library, e.g. netty,tokio")
    add("--rounds", type=_rounds, metavar="N", help=f"default {MIN_ROUNDS}, at least {MIN_ROUNDS}; with --quick 1")
    add(
        "--quick", action="store_true", help="a minute or two with small counts: shows that all works, measures nothing"
    )
    add("--sweep-all", action="store_true", help="all peers, not only Netty, against threads and pending timeouts")
    add("--timeout", type=_timeout, default=120.0, metavar="SECONDS", help="for each run of a program; default 120")
    add("--output", type=Path, metavar="DIR", help="where the raw results go; default perf/results")
    add("--list", dest="listing", action="store_true", help="show the runners and the plan, run nothing")
    add("--render", type=Path, metavar="FILE", help="tables and plots from raw results, without running")
    add("--build", type=Path, help=argparse.SUPPRESS)
    add("--cpp", type=Path, help=argparse.SUPPRESS)
    return parser


def parse(arguments: Sequence[str]) -> Options:
    parser = _parser()
    values = vars(parser.parse_args(list(arguments)))
    rounds, quick = values["rounds"], values["quick"]
    if rounds is not None and rounds < MIN_ROUNDS and not quick:
        raise WrongUsage(f"argument --rounds: {rounds} is less than {MIN_ROUNDS}, which only --quick allows")
    if quick and values["output"]:
        raise WrongUsage("argument --output: a quick run keeps nothing")
    if values["render"]:
        others = [name for name in values if name not in ("render", "build", "cpp")]
        if any(values[name] != parser.get_default(name) for name in others):
            raise WrongUsage("argument --render: goes with no other option")
    values["rounds"] = rounds or (1 if quick else MIN_ROUNDS)
    return Options(**values)
