"""`./run compare`. The script has built this library and installed matplotlib before."""

from __future__ import annotations

import argparse
import datetime
import io
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Callable, NoReturn

from . import calls, machine, plan, plots, report, results, runners, system
from .measure import Progress, duration, measure
from .plan import OURS, WORKLOADS, Section
from .results import Results
from .runners import Paths, Program
from .summary import Summary, differences, still_known
from .system import Failure, Interrupted, WrongUsage

BUSY = 0.2  # processors that other programs may use without a warning
MIN_ROUNDS = 5


def main(arguments: Sequence[str]) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, _interrupt)
    try:
        return _main(arguments)
    except (WrongUsage, Failure) as error:
        _say(f"run compare: {error}")
        return 2 if isinstance(error, WrongUsage) else 1
    except Interrupted as interrupted:
        return 128 + interrupted.args[0]
    except OSError as error:
        if not isinstance(error, BrokenPipeError):  # the reader of the output has ended
            _say(f"run compare: {error.filename or 'output'}: {error.strerror}")
        # Otherwise Python would flush into the broken pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _interrupt(number: int, _: object) -> None:
    raise Interrupted(number)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- The command line -------------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise WrongUsage(message)


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise argparse.ArgumentTypeError("names separated by commas are needed")
    return list(dict.fromkeys(names))


def _known(option: str, names: Sequence[str], there_are: Sequence[str]) -> None:
    unknown = [name for name in names if name not in there_are]
    if unknown:
        raise WrongUsage(f"argument {option}: there is no {unknown[0]}; there are {', '.join(there_are)}")


def _number(low: int, high: int, more: str = "") -> Callable[[str], int]:
    def number(text: str) -> int:
        if not re.fullmatch("[0-9]{1,9}", text) or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text} is not a whole number from {low} to {high}{more}")
        return int(text)

    return number


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = _Parser(
        prog="./run compare",
        allow_abbrev=False,
        description="Runs the workloads of perf/README.md on this library and on other timers in turn, and writes "
        "tables and plots. A run of all workloads and all peers writes perf/results/, docs/performance.md and "
        "docs/performance/. Any other run writes to build/compare-results/.",
    )
    add, flag, hidden = parser.add_argument, "store_true", argparse.SUPPRESS
    rounds = _number(1, 1000, f"; from {MIN_ROUNDS} without --quick")
    add("--workloads", type=_names, default=list(WORKLOADS), metavar="NAMES", help="only these, e.g. churn,expire")
    add("--peers", type=_names, metavar="NAMES", help="only these and this library, e.g. netty,tokio")
    add("--rounds", type=rounds, metavar="N",
        help=f"default and minimum {MIN_ROUNDS}; with --quick default 1; with --calls default {calls.ROUNDS}")
    add("--quick", action=flag, help="small counts, a minute or two: a test of the programs, not of their speed")
    add("--calls", action=flag, help="instead: the cost of a deadline in a call of gRPC, kj and Asio; only with --rounds, --quick")
    add("--brpc", type=Path, metavar="PREFIX", help="the folder into which brpc was installed: run its TimerThread too")
    add("--resume", action=flag, help="continue an interrupted run of these options, or start if there is none")
    add("--sweep-all", action=flag, help="vary threads and pending timeouts for all peers, not only for Netty and brpc")
    add("--timeout", type=_number(1, 86_400), default=120, metavar="SECONDS", help="limit of each run; default 120")
    add("--output", type=Path, metavar="DIR", help="folder of the results file, instead of perf/results/ or build/compare-results/")
    add("--list", dest="listing", action=flag, help="list the runners and the plan without running them")
    add("--render", type=Path, metavar="FILE", help="write tables and plots of a results file, without running")
    add("--build", type=Path, help=hidden)
    add("--cpp", type=Path, help=hidden)
    chosen = parser.parse_args(list(arguments))
    _known("--workloads", chosen.workloads, WORKLOADS)
    chosen.workloads = [name for name in WORKLOADS if name in chosen.workloads]
    if chosen.rounds is not None and chosen.rounds < MIN_ROUNDS and not chosen.quick:
        raise WrongUsage(f"argument --rounds: {chosen.rounds} is less than {MIN_ROUNDS}, which only --quick allows")
    if chosen.quick and chosen.output:
        raise WrongUsage("argument --output: a quick run writes no results there")
    if chosen.brpc and not (chosen.brpc / "include" / "bthread" / "timer_thread.h").exists():
        raise WrongUsage(f"argument --brpc: {chosen.brpc} (expected: a folder into which brpc was installed)")
    others = [name for name in vars(chosen) if name not in ("render", "build", "cpp")]
    if chosen.render and any(getattr(chosen, name) != parser.get_default(name) for name in others):
        raise WrongUsage("argument --render: no other option may be given")
    if chosen.calls:
        allowed = {"calls", "rounds", "quick", "build", "cpp"}
        if wrong := [name for name in vars(chosen) if name not in allowed and getattr(chosen, name) != parser.get_default(name)]:
            raise WrongUsage(f"argument --{wrong[0].replace('_', '-')}: not allowed with --calls")
        return chosen
    chosen.rounds = chosen.rounds or (1 if chosen.quick else MIN_ROUNDS)
    # Without the options that the script adds.
    shown = [one for one, before in zip(arguments, ["", *arguments]) if not {one, before} & {"--build", "--cpp"}]
    # The results do not name a folder of this machine.
    shown = [re.sub("^--brpc=.*", "--brpc=PREFIX", one) for one in shown]
    shown = ["PREFIX" if before == "--brpc" else one for one, before in zip(shown, ["", *shown])]
    chosen.command = ["./run", "compare", *shown]
    chosen.whole = not chosen.quick and chosen.peers is None and len(chosen.workloads) == len(WORKLOADS)
    return chosen


# --- The run ----------------------------------------------------------------------------------------------------------


def _main(arguments: Sequence[str]) -> int:
    if list(arguments[:1]) == ["--needs"]:
        return _needs(arguments[1:])
    chosen = parse(arguments)
    paths = _paths(chosen)
    if chosen.calls:
        return calls.run(paths, chosen.rounds, chosen.quick)
    if chosen.render:
        return _finish(results.load(chosen.render), paths)
    programs = _programs(chosen, paths)
    sections = plan.sections(plan.QUICK if chosen.quick else plan.FULL, chosen.workloads, chosen.sweep_all)
    if chosen.listing:
        return _list(chosen, programs, sections)
    return _run(chosen, paths, programs, sections)


def _needs(arguments: Sequence[str]) -> int:
    """Checks the arguments and prints a list of the things to set up."""
    if "-h" in arguments or "--help" in arguments:
        return 0
    chosen = parse(arguments)
    if chosen.calls:
        print("calls plots")
        return 0
    if chosen.render:
        results.load(chosen.render)
    else:
        _programs(chosen, _paths(chosen))
    print("" if chosen.listing else "plots" if chosen.render else "build plots brpc" if chosen.brpc else "build plots")
    return 0


def _paths(chosen: argparse.Namespace) -> Paths:
    root = Path(__file__).resolve().parents[2]
    build = (chosen.build or root / "build").absolute()
    brpc = chosen.brpc.absolute() if chosen.brpc else None
    cpp = chosen.cpp or build / ("calls" if chosen.calls else "compare")
    return Paths(root, build, cpp.absolute(), brpc)


def _programs(chosen: argparse.Namespace, paths: Paths) -> list[Program]:
    ours, *peers = runners.load(paths)
    wanted = chosen.peers or [program.name for program in peers]
    _known("--peers", wanted, [program.name for program in peers])
    return [ours, *(program for program in peers if program.name in wanted)]


def _list(chosen: argparse.Namespace, programs: Sequence[Program], sections: Sequence[Section]) -> int:
    print("runners")
    for program in programs:
        missing = program.missing()
        print(f"  {program.name}: {program.title}" + (f" (left out: {missing})" if missing else ""))
    here = {program.name: program for program in programs if not program.missing()}
    print(f"plan, {plan.plural(chosen.rounds, 'round')}")
    for entry in plan.entries_of(sections):
        who = "all that have it" if entry.everyone else ", ".join(entry.participants(list(here)))
        count = f", {entry.config.count:,} operations" if entry.config.workload in ("churn", "handoff", "touch") else ""
        print(f"  {plan.label(entry.config)}{count}: {who}")
    only = {name: program.workloads for name, program in here.items()}
    steps = list(plan.steps(sections, list(here), chosen.rounds, only))
    seconds = sum(step.config.guessed_seconds(here[step.runner].warmup) for step in steps)
    print(f"{len(steps)} runs, roughly {duration(seconds)}")
    return 0


def _run(chosen: argparse.Namespace, paths: Paths, programs: Sequence[Program], sections: list[Section]) -> int:
    progress = Progress(sys.stderr)
    ready, left_out = runners.prepare(programs, paths, progress.say)
    commit, dirty = machine.commit(paths.root)
    found = Results(
        date=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        command=chosen.command,
        commit=commit,
        dirty=dirty,
        machine=machine.describe(),
        compiler=machine.compiler(),
        rounds=chosen.rounds,
        quick=chosen.quick,
        whole=chosen.whole,
        runners=[runner for _, runner in ready],
        left_out=left_out,
        plan=sections,
    )
    partial = paths.kept / "partial.json"
    if chosen.resume and partial.exists():
        _resume(found, results.load(partial), paths.shown(partial))
        _say(f"continuing the run of {found.date}: it has {plan.plural(len(found.runs), 'run')}")
    if found.machine["busy"] > BUSY:
        cores = plan.plural(found.machine["cores"], "core")
        _say(f"other programs keep {found.machine['busy']:g} of {cores} busy: the figures will be noisy")
    known = found.unequal

    def keep() -> None:
        found.unequal = still_known(known, found) + differences(found)
        results.save(found, partial)

    keep()  # an error of the disk shows now, not after half an hour
    try:
        measure(found, ready, chosen.timeout, paths.root, progress, keep)
    except Interrupted:
        progress.show("")
        keep()
        _say(f"interrupted; {paths.shown(partial)} has the figures so far: --render shows them, --resume continues")
        raise
    found.finished = True
    kept = _unused(found, chosen, paths)
    try:
        results.save(found, kept)
    except Failure as error:
        raise Failure(f"{error}; the figures are in {paths.shown(partial)}") from error
    partial.unlink()
    status = _finish(found, paths)
    _say(f"results: {paths.shown(kept)}")
    return status


def _resume(found: Results, earlier: Results, name: str) -> None:
    """Takes over the runs of an earlier run that was to measure the same."""
    same = ("commit", "compiler", "rounds", "quick", "whole", "runners", "left_out", "plan")
    other = [key for key in same if getattr(found, key) != getattr(earlier, key)]
    other += [key for key in ("cpu", "cores", "kernel") if found.machine.get(key) != earlier.machine.get(key)]
    if other:
        raise Failure(f"{name} is a run with another {' and another '.join(other)}; without --resume a new one replaces it")
    found.date, found.machine, found.unequal, found.runs = earlier.date, earlier.machine, earlier.unequal, earlier.runs
    found.dirty = found.dirty or earlier.dirty


def _unused(found: Results, chosen: argparse.Namespace, paths: Paths) -> Path:
    """Returns the path of a new results file."""
    if chosen.quick:
        return paths.kept / "quick.json"
    folder = (chosen.output or (paths.root / "perf" / "results" if found.whole else paths.kept)).absolute()
    cpu = re.sub(r"[^a-z0-9]+", "-", found.machine["cpu"].lower()).strip("-")
    name = f"{found.date[:10]}-{cpu}-{found.commit}"
    path, number = folder / f"{name}.json", 2
    while path.exists():
        path, number = folder / f"{name}-{number}.json", number + 1
    return path


def _finish(found: Results, paths: Paths) -> int:
    """Writes tables, plots and the page."""
    summary = Summary(found)
    sys.stdout.write(report.terminal(summary))
    sys.stdout.flush()
    # Only a complete run may replace the published page.
    public = found.whole and found.finished
    docs = paths.root / "docs" if public else paths.kept
    drawn = {}
    if plots.available():
        drawn = plots.draw_all(summary, docs / "performance")
        _say(f"plots: {paths.shown(docs / 'performance')}")
    else:
        _say("no plots without matplotlib (package python3-matplotlib, or pip); --render draws them later")
    content = report.page(summary, {key: f"performance/{path.name}" for key, path in drawn.items()})
    if public:
        report.update_page(docs / "performance.md", content)
    else:
        system.write_text(docs / "performance.md", content + "\n")
    _say(f"page: {paths.shown(docs / 'performance.md')}")
    ours_failed = any(run.failed for run in found.runs if run.runner == OURS)
    return 1 if found.unequal or ours_failed else 0
