"""Draws the samples of the soak: the memory of the process, and the number of operations.

usage: plot.py SAMPLES PICTURE, with perf/ in PYTHONPATH
"""

import csv
import sys
from pathlib import Path

from compare import plots

MIB = 2**20


def main(samples: str, picture: str) -> int:
    with open(samples, encoding="utf-8") as file:
        rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    minutes = [row["seconds"] / 60 for row in rows]
    with plots.style.context(plots.SETTINGS, after_reset=True):
        figure = plots.Figure(figsize=(plots.WIDTH, 4.4))
        figure.text(0.015, 0.968, "A soak of timers", va="top", fontsize=12.5, fontweight="bold")
        memory, operations = figure.subplots(2, 1, sharex=True)
        figure.subplots_adjust(0.07, 0.11, 0.985, 0.84, hspace=0.32)
        heap = [row["heap_at_rest_bytes"] for row in rows]
        at_rest = f"heap, between two timers: at most {max(heap) / 1024:.0f} KiB"
        memory.plot(minutes, [row["resident_bytes"] / MIB for row in rows], color=plots.STRONG, linewidth=0.9, label="resident")
        memory.plot(minutes, [bytes / MIB for bytes in heap], color="#86a04e", linewidth=3, clip_on=False, label=at_rest)
        memory.set_title("Memory of the process: MiB")
        memory.legend(loc="lower right", bbox_to_anchor=(1, 0.97), ncols=2)
        operations.plot(minutes, [row["operations"] / 1e9 for row in rows], color=plots.STRONG)
        operations.set_title("Operations so far: billions")
        operations.set_xlabel("minutes")
        for axes in (memory, operations):
            axes.set_ylim(bottom=0)
            axes.margins(x=0)
            axes.grid(axis="y")
        plots.save(figure, Path(picture))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
