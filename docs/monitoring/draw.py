#!/usr/bin/env python3
"""Draws grafana.svg: the panels of grafana.json with the answers of a real Prometheus, without Grafana.

usage: draw.py --example PROGRAM [--seconds N]

PROGRAM is the example rpc_timeouts, built with prometheus-cpp. It runs under load while Prometheus scrapes it every
second. Half-way the script stops it for a second (SIGSTOP). Needs `prometheus` (a Debian package) and matplotlib, which
`./run compare` installs in build/venv-compare.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "perf"))

from compare.plots import GRID, INK, MUTED, SETTINGS, STRONG, save  # noqa: E402
from matplotlib import style  # noqa: E402
from matplotlib.colors import LogNorm  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.ticker import FuncFormatter  # noqa: E402

COLOURS = (STRONG, "#c77f2c", "#4a9c97", "#b8626f")
WIDTH, COLUMNS = 12.0, 24  # inches; of Grafana's grid
ROW = 0.33  # inches
WINDOW = "5s"  # replaces Grafana's $__rate_interval

WEB = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Prometheus:
    def __init__(self, folder: str, target: int):
        config = Path(folder, "prometheus.yml")
        config.write_text(
            "global: {scrape_interval: 1s}\n"
            f"scrape_configs: [{{job_name: rpc_timeouts, static_configs: [{{targets: ['127.0.0.1:{target}']}}]}}]\n",
            encoding="utf-8",
        )
        port = free_port()
        self.url = f"http://127.0.0.1:{port}/api/v1/"
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]
        )

    def query(self, expression: str, start: float, end: float) -> list[dict[str, Any]]:
        asked = urllib.parse.urlencode({"query": expression, "start": start, "end": end, "step": 1})
        with WEB.open(self.url + "query_range?" + asked, timeout=20) as answer:
            return json.load(answer)["data"]["result"]


def filled_in(expression: str) -> str:
    """Replaces the variables of Grafana."""
    return re.sub(r"\$(job|instance)\b", ".*", expression.replace("$__rate_interval", WINDOW))


def number(value: float, unit: str) -> str:
    if unit == "s":
        for factor, name in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
            if value * factor >= 1:
                return f"{value * factor:.3g} {name}"
        return f"{value * 1e6:.3g} µs" if value else "0"
    if unit == "percentunit":
        return f"{value * 100:.3g} %"
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"


def draw_lines(axes: Any, panel: dict[str, Any], answers: list[list[dict[str, Any]]], start: float) -> None:
    unit = panel["fieldConfig"]["defaults"]["unit"]
    for target, answer, colour in zip(panel["targets"], answers, COLOURS):
        for series in answer:
            label = re.sub(r"{{(\w+)}}", lambda name: series["metric"].get(name[1], ""), target["legendFormat"])
            points = [(float(at) - start, float(value)) for at, value in series["values"] if math.isfinite(float(value))]
            axes.plot(*zip(*points), color=colour, linewidth=1.6, label=label)
    axes.set_ylim(0, max(axes.get_ylim()[1], 1e-9))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value, unit)))
    axes.legend(loc="upper left", bbox_to_anchor=(-0.01, -0.08), ncols=4, handlelength=1.2, columnspacing=1.2)
    axes.grid(axis="y", color=GRID)


def draw_heatmap(axes: Any, answer: list[dict[str, Any]], start: float) -> None:
    """Counts are cumulative, with a series for each bound. A bucket is the difference to the bound below."""
    series = sorted(
        ((float(one["metric"]["le"]), dict((float(at), float(value)) for at, value in one["values"])) for one in answer),
        key=lambda one: one[0],
    )
    times = sorted({at for _, values in series for at in values})
    own = [[max(values.get(at, 0) - (series[i - 1][1].get(at, 0) if i else 0), 0) for at in times]
           for i, (_, values) in enumerate(series)]
    used = [i for i, row in enumerate(own) if any(value >= 0.5 for value in row) and math.isfinite(series[i][0])]
    rows = range(used[0], used[-1] + 1)
    bounds = [series[i][0] for i in rows]
    most = max(max(own[i]) for i in rows)
    cells = [[value if value >= 0.5 else math.nan for value in own[i]] for i in rows]
    axes.pcolormesh([at - start for at in times], range(len(bounds)), cells, cmap="Blues", shading="nearest",
                    norm=LogNorm(0.5, most), rasterized=True)
    axes.set_yticks([i + 0.5 for i in range(len(bounds))][::2], [f"≤ {number(bound, 's')}" for bound in bounds][::2])
    axes.set_ylim(-0.5, len(bounds) - 0.5)


def draw(prometheus: Prometheus, start: float, end: float) -> None:
    dashboard = json.loads((HERE / "grafana.json").read_text(encoding="utf-8"))
    panels = dashboard["panels"]
    rows = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels)
    height = rows * ROW + 0.6
    with style.context(SETTINGS, after_reset=True):
        figure = Figure(figsize=(WIDTH, height), dpi=150)
        figure.text(0.012, 1 - 0.13 / height, "The dashboard's panels over a run of rpc_timeouts", va="top", fontsize=12.5,
                    fontweight="bold")
        figure.text(0.012, 1 - 0.38 / height, "queries of docs/monitoring/grafana.json, answered by Prometheus; drawn by "
                    "matplotlib, not by Grafana. Half-way the process was stopped for a second.", va="top", color=MUTED)
        for panel in panels:
            answers = [prometheus.query(filled_in(target["expr"]), start, end) for target in panel["targets"]]
            at = panel["gridPos"]
            left = at["x"] / COLUMNS * WIDTH + 0.82
            bottom = height - 0.6 - (at["y"] + at["h"]) * ROW + 0.52
            axes = figure.add_axes((left / WIDTH, bottom / height, (at["w"] / COLUMNS * WIDTH - 1.05) / WIDTH,
                                    (at["h"] * ROW - 0.95) / height))
            axes.set_title(panel["title"], color=INK, fontweight="bold")
            if panel["type"] == "heatmap":
                draw_heatmap(axes, answers[0], start)
            else:
                draw_lines(axes, panel, answers, start)
            axes.set_xlim(0, end - start)
            axes.xaxis.set_major_formatter("{x:g} s")
        save(figure, HERE / "grafana.svg")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--example", required=True, metavar="PROGRAM", help="rpc_timeouts")
    parser.add_argument("--seconds", type=float, default=90, help="how long to watch it (90)")
    given = parser.parse_args()
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        processes = []
        try:
            prometheus = Prometheus(folder, port)
            processes.append(prometheus.process)
            example = subprocess.Popen(
                [given.example, "--seconds", "86400", "--metrics", str(port), "--svg", f"{folder}/rpc_timeouts.svg",
                 "--in-flight", "1000"],
                stdout=subprocess.DEVNULL,
            )
            processes.append(example)
            time.sleep(8)  # until there are rates
            start = time.time()
            time.sleep(given.seconds / 2)
            example.send_signal(signal.SIGSTOP)
            time.sleep(1)
            example.send_signal(signal.SIGCONT)
            time.sleep(given.seconds / 2 - 1)
            draw(prometheus, start, time.time())
        finally:
            for process in processes:
                process.terminate()
                process.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
