"""A description of the machine."""

from __future__ import annotations

import os
import platform
import re
import time
from pathlib import Path
from typing import Any

from . import system


def describe() -> dict[str, Any]:
    cpu = dict(re.findall(r"^([^:\n]*?)\s*: ?(.*)$", _read("/proc/cpuinfo").split("\n\n")[0], re.MULTILINE))
    return {
        "cpu": cpu_model(cpu.get("model name") or _asked(["lscpu"], r"^Model name:\s*(.+)$") or platform.processor()),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "virtual": "hypervisor" in cpu.get("flags", "").split(),
        "kernel": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip() or None,
        "clock": _read("/sys/devices/system/clocksource/clocksource0/current_clocksource").strip() or None,
        "busy": round(_busy(), 2),
    }


def _read(path: str) -> str:
    """Returns the text of a system file, "" if it does not exist."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _asked(command: list[str], pattern: str) -> str:
    found = re.search(pattern, system.run(command, 20).out, re.MULTILINE)
    return found.group(1) if found else ""


def cpu_model(name: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"\((R|TM|r|tm)\)", "", name)).strip() or "unknown CPU"


def _busy() -> float:
    """Returns the processors that other programs use. The load average would include our own build."""
    before, start = spent(), time.monotonic()
    time.sleep(1)
    return (spent() - before) / (time.monotonic() - start)


def spent() -> float:
    """Returns the busy seconds since boot: user, nice, system, interrupts and stolen time."""
    fields = [int(field) for field in _read("/proc/stat").split("\n")[0].split()[1:9]]
    return sum(fields[:3] + fields[5:]) / os.sysconf("SC_CLK_TCK")


def compiler() -> str:
    version = _asked([*(os.environ.get("CXX") or "c++").split(), "--version"], r"^(.+)$") or "unknown"
    return re.sub(r"^c\+\+ ", "g++ ", version)  # gcc prints the name by which it was called


def commit(root: Path) -> tuple[str, bool]:
    """Returns the short commit, and whether there are local changes."""
    git = ["git", "-C", str(root)]
    asked = _asked([*git, "rev-parse", "--short=10", "HEAD"], r"^(\w+)$")
    return asked or "unknown", bool(asked and _asked([*git, "status", "--porcelain"], r"(.)"))
