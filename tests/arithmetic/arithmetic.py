#!/usr/bin/env python3
"""Proves the timer's arithmetic with z3, and finds planted faults.

  arithmetic.py ROOT BUILD    builds and runs each program in subfolders of BUILD, and again for each fault

A fault changes a header of the shipped code. Then the program runs only the fault's lemma, which must be refuted.
The compiler is $CXX, or g++.
"""

import concurrent.futures
import os
import shutil
import subprocess
import sys

INTERNAL = "hashed_wheel_timer/internal/"
GRID = INTERNAL + "core/tick_grid.h"
LEVELS = INTERNAL + "wheel/slot_levels.h"
RING = INTERNAL + "wheel/revolutions.h"
TREE = INTERNAL + "wheel/due_tree.h"
ITEM = INTERNAL + "wheel/wheel_item.h"
SCALE = "hashed_wheel_timer/detail/saturating.h"
DEADLINE = INTERNAL + "time/clock.h"
CLOCK = INTERNAL + "time/request_clock.h"
WORD = INTERNAL + "memory/node_word.h"

PROGRAMS = ["slot_levels", "tick_grid", "revolutions", "due_tree", "durations", "request_clock", "node_word"]

# Program, lemma, file, text of the file, text with the fault.
FAULTS = [
    ("tick_grid", "grid_never_early", GRID, "count(deadline, 1)", "count(deadline, 2)"),
    ("tick_grid", "grid_at_most_a_tick_late", GRID, "count(deadline, 1)", "count(deadline, 0)"),
    ("tick_grid", "grid_never_early", GRID, "begin_of(tick + 1)", "begin_of(tick)"),
    ("tick_grid", "grid_at", GRID, "count(time, 0)", "count(time, 1)"),
    ("tick_grid", "grid_roundest", GRID, "last ^ (first - 1)", "last ^ first"),
    ("tick_grid", "grid_roundest", GRID, "const Unsigned last = end - 1", "const Unsigned last = end"),
    # As in tokio: a tick next to a carry gets too high a level.
    ("slot_levels", "levels_slot_holds_its_tick", LEVELS, "(tick ^ cursor) | 1", "(tick ^ (cursor + 1)) | 1"),
    # As in tokio: a slot whose span has begun counts as one of the next rotation.
    ("slot_levels", "levels_slot_holds_its_tick", LEVELS, "((cursor >> shift) & ~mask_) |", "(((cursor >> shift) + 1) & ~mask_) |"),
    ("slot_levels", "levels_slot_holds_its_tick", LEVELS, "(cursor >> shift) & ~mask_", "(cursor >> shift)"),
    ("slot_levels", "levels_no_slot_skipped", LEVELS, "(tick ^ cursor) | 1", "(tick - cursor) | 1"),
    ("slot_levels", "levels_slot_holds_its_tick", LEVELS, "(bit_width(differ)) - 1]", "(bit_width(differ)) - 0]"),
    ("due_tree", "tree_layout", TREE, "(n + kFanOut - 1) / kFanOut", "std::max<std::size_t>(n / (2 * kFanOut), 1)"),
    ("revolutions", "ring_own_tick", RING, "return tick - ((tick - static_cast<Signed>(bucket)) & mask_)", "return tick - ((static_cast<Signed>(bucket) - tick) & mask_)"),
    ("revolutions", "ring_found_again", RING, "- tag) & kTagMask", "- tag)"),
    ("revolutions", "ring_found_again", RING, "(static_cast<Signed>(revolutions) << shift_)", "(static_cast<Signed>(revolutions + 1) << shift_)"),
    ("revolutions", "ring_last_revolution", RING, "kNever - 1 - tick", "kNever - tick"),
    ("revolutions", "ring_next_tick", ITEM, "tick < kNever - 1 ?", "tick < kNever ?"),
    ("durations", "durations_exact", SCALE, "value * num + (den - 1)", "value * num"),
    ("durations", "durations_exact", SCALE, "whole > static_cast<Count>(kMax / num)", "whole > static_cast<Count>(kMax)"),
    ("durations", "durations_exact", SCALE, "return value < kMax ? value : Word{kMax}", "return value"),
    ("durations", "durations_long_division", SCALE, "remainder >= den", "remainder > den"),
    ("durations", "durations_long_division", SCALE, "if (digit) add(value, den)", "if (!digit) add(value, den)"),
    ("durations", "durations_long_division", SCALE, "      ++quotient;", "      quotient += 2;"),
    ("durations", "durations_deadline_after", DEADLINE, "now > kForever - delay ?", "now > kForever ?"),
    ("durations", "durations_distance", SCALE, "return exact < kMax ? exact : Word{kMax}", "return exact"),
    ("request_clock", "clock_conversion", CLOCK, "(cycles * rate) >> 32", "(cycles * rate) >> 31"),
    ("request_clock", "clock_error", CLOCK, "(cycles * rate) >> 32", "(cycles * rate) >> 33"),
    ("request_clock", "clock_window", CLOCK, "static_cast<std::uint64_t>(kWindow) << 32", "static_cast<std::uint64_t>(kWindow) << 33"),
    ("node_word", "generation_next_life", WORD, "return (generation | 1) + 1", "return generation + 1"),
    ("node_word", "generation_next_life", WORD, "return (generation | 1) + 1", "return (generation | 1) - 1"),
    ("node_word", "generation_next_life", WORD, "kLastGeneration = 0xFFFF'FFFC", "kLastGeneration = 0xFFFF'FFFE"),
    ("node_word", "generation_next_life", WORD, "return life < kLastGeneration", "return life <= kLastGeneration"),
    ("node_word", "generation_withdrawn", WORD, "word + kGeneration - kReference", "word + kGeneration"),
    ("node_word", "generation_cancelled", WORD, "left |= kRecheckQueued", "left |= kMoved"),
    ("node_word", "generation_references", WORD, "kReferences / 2", "kReferences"),
    ("node_word", "generation_published", WORD, "- named * kNamed", "+ named * kNamed"),
]


def build(root, folder, program):
    """Builds a program with the headers of `folder` before those of the project. Returns its path."""
    os.makedirs(folder, exist_ok=True)
    binary = os.path.join(folder, program)
    sources = [os.path.join(root, "tests/arithmetic", name + ".cpp") for name in (program + "_proof", "proof")]
    command = [os.environ.get("CXX", "g++"), "-std=c++20", "-I", folder, "-I", root, *sources, "-lz3", "-o", binary]
    subprocess.run(command, check=True)
    return binary


def prove(root, folder, program):
    """Runs all lemmas of a program. Returns whether they are proven, and a text."""
    result = subprocess.run([build(root, folder, program)], capture_output=True, text=True)
    return result.returncode == 0, result.stdout + result.stderr


def find(root, folder, fault):
    """Plants a fault in a copy of its header. Returns whether the lemma is refuted, and a text."""
    program, lemma, path, old, new = fault
    with open(os.path.join(root, path), encoding="utf-8") as file:
        text = file.read()
    if text.count(old) != 1:
        return False, f"{path}: {old!r} occurs {text.count(old)} times (expected: 1)\n"
    target = os.path.join(folder, path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "w", encoding="utf-8") as file:
        file.write(text.replace(old, new))
    result = subprocess.run([build(root, folder, program), lemma], capture_output=True, text=True)
    found = result.returncode == 1 and result.stdout.startswith(lemma + ": REFUTED")
    return found, f"{'found' if found else 'NOT FOUND'}: {new!r} in {path}\n  {result.stdout}{result.stderr}"


def main():
    root, folder = sys.argv[1:]
    for old in os.listdir(folder) if os.path.isdir(folder) else []:
        if old.isdigit() or old == "shipped":  # an older list of faults has left other headers there
            shutil.rmtree(os.path.join(folder, old))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(find, root, os.path.join(folder, str(i)), fault) for i, fault in enumerate(FAULTS)]
        jobs += [pool.submit(prove, root, os.path.join(folder, "shipped"), program) for program in PROGRAMS]
        good = True
        for job in concurrent.futures.as_completed(jobs):
            passed, text = job.result()
            good = good and passed
            print(text, end="", flush=True)
    print(f"{len(PROGRAMS)} programs, {len(FAULTS)} planted faults: {'passed' if good else 'FAILED'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
