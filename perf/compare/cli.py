"""`./run compare`, after the script has built this library and set up what draws."""

from __future__ import annotations

import datetime
import io
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Callable

from . import checks, files, machine, measure, options, page, plan, plots, report, results, runners
from .errors import Failure, Interrupted, WrongUsage
from .options import Options
from .plan import OURS, Section
from .progress import Progress, duration
from .results import Results
from .runners import Paths, Program
from .summary import Summary

BUSY = 0.2  # processors from which on the figures suffer


def main(arguments: Sequence[str]) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    _catch_signals()
    try:
        return _main(arguments)
    except WrongUsage as error:
        _say(f"run compare: {error}")
        return 2
    except Failure as error:
        _say(f"run compare: {error}")
        return 1
    except Interrupted as interrupted:
        return 128 + interrupted.signal_number
    except BrokenPipeError:
        # Whoever read our output has gone; nothing may be flushed into it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        _say(f"run compare: {error.filename or 'output'}: {error.strerror}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _main(arguments: Sequence[str]) -> int:
    if list(arguments[:1]) == ["--needs"]:
        return _needs(arguments[1:])
    chosen = options.parse(arguments)
    paths = _paths(chosen)
    if chosen.render:
        return _finish(results.load(chosen.render), paths)
    programs = _programs(chosen, paths)
    sections = plan.sections(plan.QUICK if chosen.quick else plan.FULL, chosen.workloads, chosen.sweep_all)
    if chosen.listing:
        return _list(chosen, programs, sections)
    return _run(chosen, paths, programs, sections, arguments)


def _needs(arguments: Sequence[str]) -> int:
    """Tells the script what has to be there, after the arguments were found to be right."""
    if "-h" in arguments or "--help" in arguments:
        return 0
    chosen = options.parse(arguments)
    if chosen.render:
        results.load(chosen.render)
    else:
        _programs(chosen, _paths(chosen))
    print("" if chosen.listing else "plots" if chosen.render else "build plots")
    return 0


def _catch_signals() -> None:
    def interrupt(number: int, _: object) -> None:
        raise Interrupted(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, interrupt)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _paths(chosen: Options) -> Paths:
    root = Path(__file__).resolve().parents[2]
    build = (chosen.build or root / "build").absolute()
    return Paths(root, build, (chosen.cpp or build / "compare").absolute())


def _programs(chosen: Options, paths: Paths) -> list[Program]:
    peers = runners.load_peers(paths)
    if chosen.peers is not None:
        names = [program.name for program in peers]
        unknown = [name for name in chosen.peers if name not in names]
        if unknown:
            raise WrongUsage(f"argument --peers: no such peer: {unknown[0]}; there are {', '.join(names) or 'none'}")
        peers = [program for program in peers if program.name in chosen.peers]
    return [runners.ours(paths), *peers]


def _list(chosen: Options, programs: Sequence[Program], sections: Sequence[Section]) -> int:
    print("runners")
    for program in programs:
        missing = program.missing()
        print(f"  {program.name}: {program.title}" + (f" (left out: {missing})" if missing else ""))
    here = [program for program in programs if not program.missing()]
    names = [program.name for program in here]
    print(f"plan, {plan.plural(chosen.rounds, 'round')}")
    for entry in plan.entries_of(sections):
        who = "all" if entry.everyone else ", ".join(plan.participants(entry, names))
        count = f", {entry.config.count:,} operations" if entry.config.workload in ("churn", "touch") else ""
        print(f"  {plan.label(entry.config)}{count}: {who}")
    warmups = {program.name: program.warmup for program in here}
    steps = list(plan.steps(sections, names, chosen.rounds))
    seconds = sum(step.config.guessed_seconds(warmups[step.runner]) for step in steps)
    print(f"{len(steps)} runs, roughly {duration(seconds)}")
    return 0


def _run(
    chosen: Options, paths: Paths, programs: Sequence[Program], sections: list[Section], arguments: Sequence[str]
) -> int:
    progress = Progress(sys.stderr)
    ready, left_out = runners.prepare(programs, paths, progress.say)
    commit, dirty = machine.commit(paths.root)
    found = Results(
        date=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        command=["./run", "compare", *_shown(arguments)],
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
    _warn_if_busy(found)
    partial = paths.kept / "partial.json"
    save = _saver(found, partial)
    save()  # rather now than after half an hour
    try:
        measure.measure(found, ready, chosen.timeout, paths.root, progress, save)
    except Interrupted:
        progress.clear()
        save()
        _say(f"interrupted; what was measured so far is in {_shown_path(partial, paths)}, and --render shows it")
        raise
    found.finished = True
    try:
        kept = _keep(found, chosen, paths)
    except Failure as error:
        raise Failure(f"{error}; all that was measured is in {_shown_path(partial, paths)}") from error
    partial.unlink()
    status = _finish(found, paths)
    _say(f"raw results: {_shown_path(kept, paths)}")
    return status


def _saver(found: Results, path: Path) -> Callable[[], None]:
    return lambda: results.save(found, path)


def _shown(arguments: Sequence[str]) -> list[str]:
    """Without what the script adds."""
    shown, skip = [], False
    for argument in arguments:
        if not skip and argument not in ("--build", "--cpp"):
            shown.append(argument)
        skip = argument in ("--build", "--cpp")
    return shown


def _warn_if_busy(found: Results) -> None:
    if found.machine["busy"] > BUSY:
        cores = plan.plural(found.machine["cores"], "core")
        _say(f"something else keeps {found.machine['busy']:g} of {cores} busy: the figures will be noisy")


def _shown_path(path: Path, paths: Paths) -> str:
    try:
        return str(path.relative_to(paths.root))
    except ValueError:
        return str(path)


def _keep(found: Results, chosen: Options, paths: Paths) -> Path:
    if chosen.quick:
        path = paths.kept / "quick.json"
    else:
        default = paths.root / "perf" / "results" if found.whole else paths.kept
        name = f"{found.date[:10]}-{machine.slug(found.machine['cpu'])}-{found.commit}"
        path = _unused((chosen.output or default).absolute(), name)
    results.save(found, path)
    return path


def _unused(folder: Path, name: str) -> Path:
    path, number = folder / f"{name}.json", 2
    while path.exists():
        path, number = folder / f"{name}-{number}.json", number + 1
    return path


def _finish(found: Results, paths: Paths) -> int:
    """Tables, plots and the page."""
    summary = Summary(found)
    differences = checks.differences(found)
    sys.stdout.write(report.terminal(summary, differences))
    sys.stdout.flush()
    # Only a run of everything may take the place of what the page shows.
    public = found.whole and found.finished
    docs = paths.root / "docs" if public else paths.kept
    drawn = {}
    if plots.available():
        drawn = plots.draw_all(summary, docs / "performance")
        _say(f"plots: {_shown_path(docs / 'performance', paths)}")
    else:
        _say("no plots: they need matplotlib (python3-matplotlib, or pip); later --render draws them")
    links = {key: f"performance/{path.name}" for key, path in drawn.items()}
    content = report.page(summary, differences, links)
    if public:
        page.update(docs / "performance.md", content)
    else:
        files.write_text(docs / "performance.md", content + "\n")
    _say(f"page: {_shown_path(docs / 'performance.md', paths)}")
    ours_failed = any(run.runner == OURS for run in measure.failures(found))
    return 1 if differences or ours_failed else 0
