"""Made-up results for the tests."""

from __future__ import annotations

from typing import Any

from .. import plan
from ..metrics import CHECKED_WORKLOADS, with_percentiles
from ..plan import BRPC, NETTY, OURS, SHORT_TICKS, Config, Section
from ..results import OK, UNSUPPORTED, LeftOut, Results, Run, Runner

RUNNERS = [
    Runner(OURS, OURS, "0.1.0", "g++ 12.2.0", True, 0),
    Runner(NETTY, "Netty", "4.2.0", "OpenJDK 17", True, 3),
    Runner(BRPC, "brpc", "1.17.0", "g++ 12.2.0", True, 0),
    Runner("libuv", "libuv", "1.44", "g++ 12.2.0", False, 0),
    *(Runner(name, f"ours, tick {tick} µs", "0.1.0", "g++ 12.2.0", True, 0, ("late",)) for name, tick in SHORT_TICKS.items()),
]
FACTORS = {OURS: 1.0, NETTY: 4.0, BRPC: 3.0, "libuv": 2.0, "ours-10us": 0.02, "ours-1us": 0.01}


def printed(config: Config, name: str, number: int) -> dict[str, Any]:
    """A runner's object."""
    value = FACTORS[name] * (50 + number)
    result: dict[str, Any] = {"runner": name, "workload": config.workload, "tick_ms": config.tick_ms}
    for key in ("threads", "pending", "count"):
        result[key] = getattr(config, key) or 0
    if config.workload in CHECKED_WORKLOADS:
        result.update(cpu_ns_per_op=value, wall_ns_per_op=value, wall_ms=value, operations=config.count)
        result.update(fired=0, fired_sum="0", cancelled=7, cancelled_sum=str(number))
        if name == "libuv":
            result["note"] = "in the loop's own thread"
    elif config.workload == "memory":
        result["bytes_per_timeout"] = 64 * FACTORS[name]
    elif config.workload in ("idle", "far"):
        result.update(cpu_ms_per_s=FACTORS[name], wakeups_per_s=0 if name == OURS else None)
    elif config.workload == "rate":
        result.update(kept_mib=0.25 * FACTORS[name], cpu_ms_per_s=FACTORS[name])
    else:
        result.update(late_us=[value * permille / 100 for permille in range(1001)], early=0)
    return result


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
    only = {runner.name: runner.workloads for runner in RUNNERS}
    for step in plan.steps(shown, list(only), rounds, only):
        name, config = step.runner, step.config
        if name == "libuv" and ((config.threads or 1) > 1 or config.workload == "handoff"):
            reason = "no cancel across threads"
            made.runs.append(Run(name, config, step.round, UNSUPPORTED, reason))
        else:
            result = printed(config, name, step.round)
            result = with_percentiles(result) if config.workload == "late" else result
            made.runs.append(Run(name, config, step.round, OK, result=result))
    return made


def changed(made: Results, runner: str, number: int, **fields: object) -> None:
    """Changes fields of the first run of `runner` in that round."""
    index = next(i for i, run in enumerate(made.runs) if run.runner == runner and run.round == number)
    run = made.runs[index]
    made.runs[index] = Run(runner, run.config, number, OK, result={**(run.result or {}), **fields})
