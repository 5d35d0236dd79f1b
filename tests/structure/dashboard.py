"""Checks the Grafana dashboard: it shows exactly the metrics of prometheus.h, and its panels do not overlap.

usage: dashboard.py SOURCE_ROOT
"""

import itertools
import json
import re

import tree

DASHBOARD = "docs/monitoring/grafana.json"
HEADER = "hashed_wheel_timer/prometheus.h"
METRIC = re.compile(r"\bhwt_\w+")
OF_A_HISTOGRAM = re.compile(r"_(bucket|sum|count)$")
# Zero until the timer has stopped; then the other counters determine it (see TimerStats).
NOT_SHOWN = {"hwt_timeouts_unprocessed_total"}


def overlap(a, b):
    return (a["x"] < b["x"] + b["w"] and b["x"] < a["x"] + a["w"]
            and a["y"] < b["y"] + b["h"] and b["y"] < a["y"] + a["h"])


def faults(here):
    return (f"{DASHBOARD}: {what}" for what in faults_of(json.loads(here.read(DASHBOARD)), here.read(HEADER)))


def faults_of(dashboard, header):
    served = set(METRIC.findall(header))
    wrong = [f"no {key}" for key in ("title", "uid", "schemaVersion", "templating", "time") if not dashboard.get(key)]
    panels = dashboard["panels"]
    if len({panel["id"] for panel in panels}) != len(panels):
        wrong.append("two panels have one id")
    variables = {variable["name"] for variable in dashboard["templating"]["list"]} | {"__rate_interval"}
    asked = set()
    for panel in panels:
        place = panel["gridPos"]
        if place["x"] < 0 or place["x"] + place["w"] > 24:
            wrong.append(f'{panel["title"]}: wider than the grid')
        for target in panel["targets"]:
            expression = target["expr"]
            asked |= {OF_A_HISTOGRAM.sub("", name) for name in METRIC.findall(expression)}
            wrong += [f'{panel["title"]}: no variable ${name}' for name in re.findall(r"\$(\w+)", expression)
                      if name not in variables]
            if expression.count("(") != expression.count(")") or not target.get("refId"):
                wrong.append(f'{panel["title"]}: {expression}')
    for one, other in itertools.combinations(panels, 2):
        if overlap(one["gridPos"], other["gridPos"]):
            wrong.append(f'{one["title"]} and {other["title"]} overlap')
    wrong += [f"{name} is used, but {HEADER} does not have it" for name in sorted(asked - served)]
    wrong += [f"{name} is in no panel" for name in sorted(served - asked - NOT_SHOWN)]
    return wrong


if __name__ == "__main__":
    tree.main(faults, "each metric is in a panel")
