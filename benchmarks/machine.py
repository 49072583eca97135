"""The machine being measured: its description, its load, and its limits."""

import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import changes


def busy_seconds():
    """Busy time since boot of the processors that this process may use, other programs included."""
    total = 0
    for line in Path("/proc/stat").read_text().splitlines():
        name, *fields = line.split()
        if name[:3] != "cpu" or name == "cpu" or int(name[3:]) not in os.sched_getaffinity(0):
            continue
        numbers = [int(field) for field in fields[:8]]
        total += sum(numbers) - numbers[3] - numbers[4]  # minus idle and iowait
    return total / os.sysconf("SC_CLK_TCK")


def measure_limits(build, known=None):
    """The machine's limits; the higher of this and an earlier measurement counts."""
    program = build / "benchmarks" / "limits"
    if not program.exists():
        sys.exit(f"bench: {program} was not built; start the suite with ./run bench")
    limits = known or {}
    for line in subprocess.run([program], check=True, capture_output=True, text=True, timeout=120).stdout.splitlines():
        name, threads, figure = line.split()
        found = limits.setdefault(name, {})
        found[threads] = max(found.get(threads, 0), float(figure))
    return limits


def machine():
    model = platform.machine()
    for line in open("/proc/cpuinfo"):
        if line.startswith(("model name", "CPU part")):
            model = f"{platform.machine()}, {line.split(':')[1].strip()}"
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {"processor": model, "processors": len(os.sched_getaffinity(0)), "memory GiB": round(memory, 1),
            "system": platform.platform(), "load at start": os.getloadavg()[0], "date": time.strftime("%Y-%m-%d"),
            "commit": changes.commit()}
