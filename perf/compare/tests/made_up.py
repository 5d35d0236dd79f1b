"""Made-up results, for tests."""

from __future__ import annotations

from typing import Any

from .. import plan
from ..plan import NETTY, OURS, Config, Section
from ..results import OK, UNSUPPORTED, LeftOut, Results, Run, Runner

OURS_RUNNER = Runner(OURS, OURS, "0.1.0", "g++ 12.2.0", True, 0)
NETTY_RUNNER = Runner(NETTY, "Netty", "4.2.0", "OpenJDK 17", True, 3)
LOOP_RUNNER = Runner("libuv", "libuv", "1.44", "g++ 12.2.0", False, 0)
RUNNERS = [OURS_RUNNER, NETTY_RUNNER, LOOP_RUNNER]
FACTORS = {OURS: 1.0, NETTY: 4.0, "libuv": 2.0}


def round_of(config: Config, name: str, number: int) -> dict[str, Any]:
    value = FACTORS[name] * (50 + number)
    result: dict[str, Any] = {"runner": name, "workload": config.workload, "tick_ms": config.tick_ms, "round": 1}
    for key in ("threads", "pending", "count"):
        result[key] = getattr(config, key) or 0
    if config.workload in ("churn", "expire", "touch"):
        result.update(cpu_ns_per_op=value, wall_ns_per_op=value, wall_ms=value, operations=config.count)
        result.update(fired=0, fired_sum="0", cancelled=7, cancelled_sum=str(number))
        if name == "libuv":
            result["note"] = "in the loop's own thread"
    elif config.workload == "memory":
        result["bytes_per_timeout"] = 64 * FACTORS[name]
    elif config.workload in ("idle", "far"):
        result.update(cpu_ms_per_s=FACTORS[name], wakeups_per_s=0 if name == OURS else None)
    else:
        result.update(late_us=[value * permille / 100 for permille in range(1001)], early=0)
    return result


def run(config: Config, name: str, number: int) -> Run:
    if name == "libuv" and (config.threads or 1) > 1:
        reason = {"unsupported": "no cancel across threads"}
        return Run(name, config, number, UNSUPPORTED, 0.1, reason["unsupported"], reason)
    return Run(name, config, number, OK, 0.1, result=round_of(config, name, number))


def results(sections: list[Section] | None = None, rounds: int = 5) -> Results:
    shown = plan.sections(plan.QUICK) if sections is None else sections
    made = Results(
        date="2025-01-02T03:04:05Z",
        command=["./run", "compare"],
        commit="0123456789",
        dirty=False,
        machine={"cpu": "Some CPU", "cores": 2, "virtual": True, "kernel": "Linux 6.1", "busy": 0.0},
        compiler="g++ 12.2.0",
        rounds=rounds,
        quick=False,
        whole=True,
        runners=list(RUNNERS),
        left_out=[LeftOut("kafka", "Kafka", "needs java (package default-jdk-headless)")],
        plan=shown,
        finished=True,
    )
    names = [runner.name for runner in RUNNERS]
    asked = set()
    for step in plan.steps(shown, names, rounds):
        made_run = run(step.config, step.runner, step.round)
        if made_run.status == UNSUPPORTED and (step.runner, step.config) in asked:
            continue
        asked.add((step.runner, step.config))
        made.runs.append(made_run)
    return made
