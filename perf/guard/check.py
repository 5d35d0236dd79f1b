#!/usr/bin/env python3
"""Holds what the timer costs against what it did cost when that was last recorded.

  check.py --build BUILD_DIR --check     prints a table; exit status 1 if something has become dearer
  check.py --build BUILD_DIR --record    stores what it finds in expected.json, to be reviewed and committed

Two kinds of figures, because neither sees what the other does:

* Instructions and locked instructions (read-modify-writes and fences) of each operation, counted by valgrind. They are
  the same in every run, whatever else the machine does, but each compiler has its own.
* Ratios of CPU times, for what a count does not show: cache misses, and cache lines that threads take from each other.
  They are nearly the same on every machine, but noisy.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # the sources stay as they are
import callgrind  # noqa: E402

EXPECTED = pathlib.Path(__file__).resolve().parent / "expected.json"

# The same sources give the same count. What varies is around them: another patch release of the compiler, of the C++
# library or of the queue. A step that new_timeout() did not take before is more than 5 %.
INSTRUCTIONS_TOLERANCE = 0.05
# They are exact as well, but for those that come once in hundreds of operations, such as that of a whole batch.
LOCKED_TOLERANCE = 0.05
# How many times what is stored a ratio may be. A machine that does something else at the same time moves it by up to a
# third, another model of processor too; but not what a second thread costs, because that is next to nothing.
RATIO_LIMIT = 1.6
RATIO_LIMITS = {"churn_2_threads / churn_1_thread": 1.3}
ATTEMPTS = 3
RECORDED_RUNS = 5

INSTRUCTIONS = "instructions"
LOCKED = "locked instructions"
RATIOS = "ratios"
NO_VALGRIND = "valgrind: not found (install it: apt-get install valgrind)"


class Unusable(Exception):
    """There is nothing to measure, or nothing to measure it with."""


def run(*command):
    # Bound at once: else the first call of each function of a shared library would count the search for it.
    environment = dict(os.environ, LD_BIND_NOW="1")
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment, timeout=600)
    except subprocess.TimeoutExpired as error:
        raise Unusable(f"{' '.join(map(str, command))}: not done after {error.timeout:g} s") from error
    if done.returncode != 0:
        raise Unusable(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stderr.strip()}")
    return done.stdout


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
        """{operation: {instructions, locked instructions}}, each of one operation."""
        with tempfile.TemporaryDirectory() as directory:
            out = pathlib.Path(directory) / "callgrind.out"
            times = json.loads(run(*callgrind.command(out, "counted_*"), self.program, "count"))
            totals = callgrind.inclusive(out, "counted_")
        missing = sorted(set(times) - set(totals))
        if missing:
            raise Unusable(f"valgrind has not counted: {', '.join(missing)}")
        return {
            name: {INSTRUCTIONS: round(totals[name][0] / times[name], 1), LOCKED: round(totals[name][1] / times[name], 2)}
            for name in sorted(times)
        }

    def ratios(self):
        return json.loads(run(self.program, "ratios"))


class Table:
    HEADER = ("stored", "now", "change", "verdict")

    def __init__(self, title):
        self.rows = [(title, *self.HEADER)]
        self.losses = []

    def add(self, name, stored, now, change, lost, better):
        self.rows.append((name, stored, now, change, "LOSS" if lost else "better: record it" if better else "ok"))
        if lost:
            self.losses.append(f"{name}: {stored} -> {now}")

    def add_new(self, name, now):
        self.rows.append((name, "-", now, "", "new: record it"))

    def add_gone(self, name, stored):
        self.rows.append((name, stored, "-", "", "LOSS"))
        self.losses.append(f"{name}: no longer measured; if that is meant, record it")

    def show(self):
        widths = [max(len(row[i]) for row in self.rows) for i in range(len(self.rows[0]))]
        for row in self.rows:
            numbers = "  ".join(cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:-1]))
            print(f"{row[0].ljust(widths[0])}  {numbers}  {row[-1]}")
        print()


def changed(stored, now):
    return f"{(now / stored - 1) * 100:+.1f} %"


def check_counts(guard, stored):
    def text(count):
        return f"{count[INSTRUCTIONS]:g}" + (f" + {count[LOCKED]:g} locked" if count[LOCKED] else "")

    table = Table("instructions of one")
    now = guard.counts()
    for name in sorted(set(stored) | set(now)):
        if name not in now:
            table.add_gone(name, text(stored[name]))
        elif name not in stored:
            table.add_new(name, text(now[name]))
        else:
            before, after = stored[name], now[name]
            more = after[INSTRUCTIONS] / before[INSTRUCTIONS] - 1
            more_locked = after[LOCKED] - before[LOCKED]
            lost = more > INSTRUCTIONS_TOLERANCE or more_locked > LOCKED_TOLERANCE
            better = more < -INSTRUCTIONS_TOLERANCE or more_locked < -LOCKED_TOLERANCE
            table.add(name, text(before), text(after), changed(before[INSTRUCTIONS], after[INSTRUCTIONS]), lost, better)
    table.show()
    return table.losses


def check_ratios(guard, stored):
    """A ratio is lost when each attempt finds it too high; noise is not that steady."""
    def limit(name):
        return stored[name] * RATIO_LIMITS.get(name, RATIO_LIMIT)

    best = {}
    for _ in range(ATTEMPTS):
        for name, ratio in guard.ratios().items():
            best[name] = min(ratio, best.get(name, ratio))
        if all(best.get(name, 0) <= limit(name) for name in stored):
            break
    table = Table("CPU time of / by that of")
    for name in sorted(set(stored) | set(best)):
        if name not in best:
            table.add_gone(name, f"{stored[name]:.2f}")
        elif name not in stored:
            table.add_new(name, f"{best[name]:.2f}")
        else:
            before, after = stored[name], best[name]
            table.add(name, f"{before:.2f}", f"{after:.2f}", changed(before, after),
                      lost=after > limit(name), better=after * RATIO_LIMIT < before)
    table.show()
    return table.losses


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
    expected[RATIOS] = {name: round(sorted(run[name] for run in runs)[RECORDED_RUNS // 2], 2) for name in sorted(runs[0])}
    EXPECTED.write_text(json.dumps(expected, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    print(f"recorded in {EXPECTED}: the instructions of {guard.build}, and the ratios")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, metavar="BUILD_DIR", help="the build directory, a release")
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
