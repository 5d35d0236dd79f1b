"""Runs the plan and shows the progress."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Callable, TextIO

from . import system
from .plan import Config, Step, label, steps
from .results import FAILED, OK, TIMED_OUT, UNSUPPORTED, Results, Run, Runner
from .runners import BadOutput, Program, parse_round

QUIET_SECONDS = 15.0  # between two lines of progress, unless a terminal can overwrite them


def duration(seconds: float) -> str:
    return f"{max(1, round(seconds))} s" if seconds < 90 else f"{round(seconds / 60)} min"


class Progress:
    """One line: the current run, the share that is done, and the time left."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self._last = -QUIET_SECONDS

    def show(self, line: str) -> None:
        if self._terminal:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r{line[:width]:<{width}}", end="\r", file=self._stream, flush=True)
        elif line and time.monotonic() - self._last >= QUIET_SECONDS:
            self._last = time.monotonic()
            print(line, file=self._stream, flush=True)

    def say(self, text: str) -> None:
        self.show("")
        print(text, file=self._stream, flush=True)


def measure(
    results: Results,
    programs: Sequence[tuple[Program, Runner]],
    timeout: float,
    root: Path,
    progress: Progress,
    keep: Callable[[], None],
) -> None:
    """Appends each run to `results` at once, and calls `keep` after all runs of a configuration. Skips the
    configurations of a round that `results` has, and repeats those that it has in part."""
    by_name = {runner.name: (program, runner) for program, runner in programs}
    only = {runner.name: runner.workloads for _, runner in programs}
    todo = _missing(results, list(steps(results.plan, list(by_name), results.rounds, only)))
    guesses = [step.config.guessed_seconds(by_name[step.runner][1].warmup) for step in todo]
    guessed = taken = 0.0
    settled = _settled(results)
    for index, step in enumerate(todo):
        program, runner = by_name[step.runner]
        guessed += guesses[index]
        if (step.runner, step.config) not in settled:
            left = sum(guesses[index:]) * (taken / (guessed - guesses[index]) if taken else 1.0)
            # The most important part comes first, because a narrow terminal cuts off the end.
            done = f"{index / len(todo):4.0%}, {duration(left)} left, round {step.round} of {results.rounds}"
            progress.show(f"{done}: {runner.title}: {label(step.config)}")
            start = time.monotonic()
            run = run_step(step, program.run, runner.warmup, timeout, root)
            taken += time.monotonic() - start
            results.runs.append(run)
            if run.status in (UNSUPPORTED, TIMED_OUT):
                settled.add((step.runner, step.config))
            if run.failed:
                progress.say(f"{runner.title}: {label(step.config)}: {run.status}: {run.message}")
        if index + 1 == len(todo) or _group(todo[index + 1]) != _group(step):
            keep()
    progress.show("")


def _group(one: Step | Run) -> tuple[int, Config]:
    return one.round, one.config


def _settled(results: Results) -> set[tuple[str, Config]]:
    """Runs that are not repeated, because the outcome would be the same."""
    return {(run.runner, run.config) for run in results.runs if run.status in (UNSUPPORTED, TIMED_OUT)}


def _missing(results: Results, todo: list[Step]) -> list[Step]:
    """Returns all steps of each configuration and round that is incomplete, and removes its runs from `results`."""
    ran, settled = {(*_group(run), run.runner) for run in results.runs}, _settled(results)
    missing = {
        _group(step)
        for step in todo
        if (*_group(step), step.runner) not in ran and (step.runner, step.config) not in settled
    }
    results.runs = [run for run in results.runs if _group(run) not in missing]
    return [step for step in todo if _group(step) in missing]


def run_step(step: Step, command: Sequence[str], warmup: int, timeout: float, root: Path) -> Run:
    # The seed is the round, so that all runners of a round do equal work.
    outcome = system.run([*command, *step.config.arguments(warmup, step.round)], timeout)
    status, message, result = FAILED, "", None
    if outcome.timed_out:
        status, message = TIMED_OUT, f"not done within {timeout:g} s; not tried again"
    elif not outcome.ok:
        how = f"killed by signal {-outcome.status}:" if outcome.status < 0 else f"exit status {outcome.status}:"
        last = [line for line in outcome.err.splitlines() if line.strip()][-1:]
        message = " ".join([how, *last]).replace(str(root), ".")
    else:
        try:
            result = parse_round(outcome.out, step.config)
            status = OK
            if result.get("unsupported"):
                status, message, result = UNSUPPORTED, str(result["unsupported"]), None
        except BadOutput as error:
            message = str(error)
    return Run(step.runner, step.config, step.round, status, message, result)
