"""What the figures were taken on."""

from __future__ import annotations

import os
import platform
import re
import shutil
import time
from pathlib import Path
from typing import Any

from . import files, process

ASK_SECONDS = 20
LOOK_SECONDS = 1.0


def describe() -> dict[str, Any]:
    info = _cpu_info()
    governor = files.read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    return {
        "cpu": cpu_model(info),
        "cores": cores(),
        "virtual": "hypervisor" in info.get("flags", "").split(),
        "kernel": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "governor": governor or None,
        "clock": files.read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource") or None,
        "busy": round(busy(), 2),
    }


def cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def busy() -> float:
    """How many processors others keep busy. The load average would still tell of our own build."""
    before, start = _processor_seconds(), time.monotonic()
    time.sleep(LOOK_SECONDS)
    return (_processor_seconds() - before) / (time.monotonic() - start)


def _processor_seconds() -> float:
    """Of all processes since the machine was started."""
    fields = files.read_line("/proc/stat").split()[1:]
    idle = (3, 4)  # the second one: waiting for a disk
    spent = sum(int(field) for place, field in enumerate(fields[:8]) if place not in idle)
    return spent / os.sysconf("SC_CLK_TCK")


def _cpu_info() -> dict[str, str]:
    """Of the first processor."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    pairs = (line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}


def cpu_model(info: dict[str, str]) -> str:
    model = (
        info.get("model name") or _asked(["lscpu"], r"^Model name:\s*(.+)$") or platform.processor() or "unknown CPU"
    )
    return re.sub(r"\s+", " ", re.sub(r"\((R|TM|r|tm)\)", "", model)).strip()


def _asked(command: list[str], pattern: str) -> str:
    if not shutil.which(command[0]):
        return ""
    found = re.search(pattern, process.run(command, ASK_SECONDS).out, re.MULTILINE)
    return found.group(1) if found else ""


def compiler() -> str:
    command = (os.environ.get("CXX") or "c++").split()
    version = _asked([*command, "--version"], r"^(.+)$") or "unknown"
    return re.sub(r"^c\+\+ ", "g++ ", version)  # gcc prints the name it was called by


def commit(root: Path) -> tuple[str, bool]:
    """The short commit, and whether something was changed since."""
    git = ["git", "-C", str(root)]
    asked = process.run(git + ["rev-parse", "--short=10", "HEAD"], ASK_SECONDS)
    if not asked.ok:
        return "unknown", False
    status = process.run(git + ["status", "--porcelain"], ASK_SECONDS)
    return asked.out.strip(), bool(status.out.strip())


def slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
