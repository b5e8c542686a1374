"""What a measurement was made on."""

from __future__ import annotations

import os
import platform
from datetime import datetime, timezone
from pathlib import Path
from typing import Any


def describe_machine() -> dict[str, Any]:
    """Processor, cores, memory, system, Python and date: what a reader needs to judge figures."""
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load": [round(value, 1) for value in os.getloadavg()] if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def one_line(machine: dict[str, Any]) -> str:
    """For a caption."""
    load = machine.get("load")
    busy = f", load average {load[0]}" if load else ""
    return (
        f"{machine['date']}, {machine['cores']} cores of {machine['processor']}, "
        f"{machine['system']}, Python {machine['python']}{busy}"
    )
