#!/usr/bin/env python3
"""Compares instruction counts and CPU time ratios of the timer with the stored ones.

  check.py --build BUILD_DIR --check     prints a table; exit status 1 if a cost has grown
  check.py --build BUILD_DIR --record    stores the figures in expected.json, to be reviewed and committed

Two kinds of figures complement each other:

* Instructions and locked instructions (read-modify-writes and fences) of each operation, counted by Valgrind. They are
  equal in every run, but differ between compilers.
* Ratios of CPU times. They show cache misses and cache lines that threads share. They hardly differ between machines,
  but are noisy.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from statistics import median

EXPECTED = pathlib.Path(__file__).resolve().parent / "expected.json"

# Other patch releases of the compiler, the C++ library or the queue change counts a little. A new step of new_timeout()
# is more than 5 %.
INSTRUCTIONS_TOLERANCE = 0.05
# For locked instructions that occur once in hundreds of operations, such as that of a batch.
LOCKED_TOLERANCE = 0.05
# The limit of a ratio, relative to the stored one. Other work on the machine or another processor changes a ratio by up
# to a third. Two ratios stay near 1 everywhere, so their limits are lower: that of two threads, and that of a loop.
RATIO_LIMIT = 1.6
RATIO_LIMITS = {"churn_2_threads / churn_1_thread": 1.3, "churn_in_a_loop / churn_1_thread": 1.17}
ATTEMPTS = 3
RECORDED_RUNS = 5

INSTRUCTIONS = "instructions"
LOCKED = "locked instructions"
RATIOS = "ratios"
NO_VALGRIND = "valgrind: not found (install it: apt-get install valgrind)"


class Unusable(Exception):
    """The program or a tool is missing."""


def run(*command):
    # Otherwise the first call of a function of a shared library includes its symbol lookup.
    environment = dict(os.environ, LD_BIND_NOW="1")
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment, timeout=600)
    except subprocess.TimeoutExpired as error:
        raise Unusable(f"{' '.join(map(str, command))}: not done after {error.timeout:g} s") from error
    if done.returncode != 0:
        raise Unusable(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stderr.strip()}")
    return done.stdout


def inclusive(out, prefix):
    """Returns {name without the prefix: [instructions, locked instructions]} of the functions whose names begin with
    `prefix`, including their callees. They must not call each other.

    The format: "fn=NAME" begins a function. Lines "POSITION COUNT..." follow, and for a call "calls=..." and a line
    with the counts of the callee. Zeros at the end of a line may be missing.
    """
    totals = {}
    current = None
    for line in out.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("events:") and line.split()[1:] != ["Ir", "Ge"]:  # bus events are the locked instructions
            raise Unusable(f"{out}: unexpected {line}")
        if line.startswith("fn="):
            name = line[len("fn="):].strip()
            current = totals.setdefault(name[len(prefix):], [0, 0]) if name.startswith(prefix) else None
        elif current is not None and line[:1].isdigit():
            for i, count in enumerate(line.split()[1:]):
                current[i] += int(count)
    return totals


class Guard:
    def __init__(self, build_dir):
        self.program = pathlib.Path(build_dir) / "perf" / "guard" / "guard"
        if not self.program.is_file():
            raise Unusable(f"{self.program}: not found (build it first: meson compile -C {build_dir})")
        described = json.loads(run(self.program, "describe"))
        if not described["release"]:
            raise Unusable(f"{self.program}: built without optimisation (needed: meson setup --buildtype=release)")
        self.build = described["build"]

    def counts(self):
        """Returns {operation: {instructions, locked instructions}} of one operation each."""
        with tempfile.TemporaryDirectory() as directory:
            out = pathlib.Path(directory) / "callgrind.out"
            callgrind = [
                "valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--toggle-collect=counted_*",
                "--collect-atstart=no", "--collect-bus=yes", "--compress-strings=no", "--compress-pos=no",
            ]
            times = json.loads(run(*callgrind, self.program, "count"))
            totals = inclusive(out, "counted_")
        missing = sorted(set(times) - set(totals))
        if missing:
            raise Unusable(f"valgrind did not count: {', '.join(missing)}")
        return {
            name: {INSTRUCTIONS: round(totals[name][0] / times[name], 1), LOCKED: round(totals[name][1] / times[name], 2)}
            for name in sorted(times)
        }

    def ratios(self):
        return json.loads(run(self.program, "ratios"))


def compared(title, stored, now, text, weigh, judge):
    """Prints a table and returns the losses. text(figure) is a cell, weigh(figure) the compared number, and judge(name,
    before, after) returns (is a loss, is better)."""
    rows, losses = [(title, "stored", "now", "change", "verdict")], []
    for name in sorted(set(stored) | set(now)):
        before, after = stored.get(name), now.get(name)
        cells = [text(figure) if figure is not None else "-" for figure in (before, after)]
        change, verdict = "", "new: record it"
        if after is None:
            verdict = "LOSS"
            losses.append(f"{name}: no longer measured; record it if that is intended")
        elif before is not None:
            change = f"{(weigh(after) / weigh(before) - 1) * 100:+.1f} %"
            lost, better = judge(name, before, after)
            verdict = "LOSS" if lost else "better: record it" if better else "ok"
            losses += [f"{name}: {cells[0]} -> {cells[1]}"] if lost else []
        rows.append((name, *cells, change, verdict))
    widths = [max(map(len, column)) for column in zip(*rows)]
    for name, *figures, verdict in rows:
        print("  ".join([name.ljust(widths[0]), *map(str.rjust, figures, widths[1:]), verdict]))
    print()
    return losses


def check_counts(guard, stored):
    def text(count):
        return f"{count[INSTRUCTIONS]:g}" + (f" + {count[LOCKED]:g} locked" if count[LOCKED] else "")

    def judge(_, before, after):
        more = after[INSTRUCTIONS] / before[INSTRUCTIONS] - 1
        more_locked = after[LOCKED] - before[LOCKED]
        return (more > INSTRUCTIONS_TOLERANCE or more_locked > LOCKED_TOLERANCE,
                more < -INSTRUCTIONS_TOLERANCE or more_locked < -LOCKED_TOLERANCE)

    return compared("instructions of one", stored, guard.counts(), text, lambda count: count[INSTRUCTIONS], judge)


def check_ratios(guard, stored):
    """A ratio is a loss if it is too high in each attempt."""
    limits = {name: ratio * RATIO_LIMITS.get(name, RATIO_LIMIT) for name, ratio in stored.items()}
    best = {}
    for _ in range(ATTEMPTS):
        for name, ratio in guard.ratios().items():
            best[name] = min(ratio, best.get(name, ratio))
        if all(best.get(name, 0) <= limit for name, limit in limits.items()):
            break
    return compared("CPU time of / by that of", stored, best, lambda ratio: f"{ratio:.2f}", float,
                    lambda name, before, after: (after > limits[name], after * RATIO_LIMIT < before))


def read_expected():
    if not EXPECTED.exists():
        return {INSTRUCTIONS: {}, RATIOS: {}}
    return json.loads(EXPECTED.read_text(encoding="utf-8"))


def check(guard):
    expected = read_expected()
    losses = []
    if shutil.which("valgrind") is None:
        losses.append(f"instructions: not counted, {NO_VALGRIND}")
        print(losses[-1] + "\n")
    elif guard.build in expected[INSTRUCTIONS]:
        losses += check_counts(guard, expected[INSTRUCTIONS][guard.build])
    else:
        known = ", ".join(sorted(expected[INSTRUCTIONS])) or "none"
        print(f"instructions: skipped, none are stored for {guard.build} (stored: {known}); --record stores them\n")
    losses += check_ratios(guard, expected[RATIOS])
    print("".join(f"LOSS {loss}\n" for loss in losses) + ("FAILED" if losses else "passed"))
    return 1 if losses else 0


def record(guard):
    if shutil.which("valgrind") is None:
        raise Unusable(NO_VALGRIND)
    expected = read_expected()
    expected[INSTRUCTIONS][guard.build] = guard.counts()
    runs = [guard.ratios() for _ in range(RECORDED_RUNS)]
    expected[RATIOS] = {name: round(median(run[name] for run in runs), 2) for name in runs[0]}
    EXPECTED.write_text(json.dumps(expected, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    print(f"recorded in {EXPECTED}: the instructions of {guard.build}, and the ratios")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, metavar="BUILD_DIR", help="the build directory of a release build")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_const", dest="action", const=check)
    what.add_argument("--record", action="store_const", dest="action", const=record)
    arguments = parser.parse_args()
    try:
        return arguments.action(Guard(arguments.build))
    except Unusable as error:
        print(f"check.py: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
