"""Runs the plan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable

from . import process
from .parsing import BadOutput, parse_round
from .plan import Config, Step, label, steps
from .progress import Clock, Progress
from .results import FAILED, OK, TIMED_OUT, UNSUPPORTED, Results, Run, Runner
from .runners import Program


def measure(
    results: Results,
    programs: Sequence[tuple[Program, Runner]],
    timeout: float,
    root: Path,
    progress: Progress,
    after_round: Callable[[], None],
) -> None:
    """Adds to `results` run by run, so that an interruption loses nothing."""
    commands = {runner.name: program.run for program, runner in programs}
    runners = {runner.name: runner for _, runner in programs}
    clock = Clock({name: runner.warmup for name, runner in runners.items()})
    todo = list(steps(results.plan, list(runners), results.rounds))
    settled: set[tuple[str, Config]] = set()  # asking again would bring the same answer
    for index, step in enumerate(todo):
        if (step.runner, step.config) not in settled:
            rest = [other for other in todo[index:] if (other.runner, other.config) not in settled]
            runner = runners[step.runner]
            progress.show(step, runner.title, results.rounds, index / len(todo), clock.left(rest))
            run = run_step(step, commands[step.runner], runner.warmup, timeout, root)
            clock.took(step, run.seconds)
            results.runs.append(run)
            if run.status in (UNSUPPORTED, TIMED_OUT):
                settled.add((step.runner, step.config))
            if run.status in (FAILED, TIMED_OUT):
                progress.say(f"{runner.title}: {label(step.config)}: {run.status}: {run.message}")
        if index + 1 == len(todo) or todo[index + 1].round != step.round:
            after_round()
    progress.clear()


def run_step(step: Step, command: Sequence[str], warmup: int, timeout: float, root: Path) -> Run:
    # The round is the seed: the same for all in it, another one in the next.
    outcome = process.run([*command, *step.config.arguments(warmup, step.round)], timeout)

    def run(status: str, message: str = "", result: dict[str, Any] | None = None) -> Run:
        return Run(step.runner, step.config, step.round, status, outcome.seconds, message, result)

    if outcome.timed_out:
        return run(TIMED_OUT, f"not done within {timeout:g} s; not tried again")
    if not outcome.ok:
        last = [line for line in outcome.err.splitlines() if line.strip()][-1:]
        words = " ".join([_ending(outcome.status), *last])
        return run(FAILED, words.replace(str(root), "."))
    try:
        result = parse_round(outcome.out, step.config)
    except BadOutput as error:
        return run(FAILED, str(error))
    if result.get("unsupported"):
        return run(UNSUPPORTED, str(result["unsupported"]), result)
    return run(OK, result=result)


def _ending(status: int) -> str:
    return f"killed by signal {-status}:" if status < 0 else f"exit status {status}:"


def failures(results: Results) -> list[Run]:
    return [run for run in results.runs if run.status in (FAILED, TIMED_OUT)]
