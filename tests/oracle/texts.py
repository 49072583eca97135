"""Locates jax's own StableHLO texts, with inputs and values: made by the installed jax when first needed."""

import fcntl
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = ("stablehlo_functions.py", "make_stablehlo.py", "expected.py", "judge.py")


def folder(build):
    """`build`/oracle with all texts; several programs may call this at once, one of them writes."""
    place = Path(build) / "oracle"
    place.mkdir(parents=True, exist_ok=True)
    with open(place / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        bundle = place / "stablehlo.bundle"
        if not bundle.exists() or bundle.stat().st_mtime < max((HERE / name).stat().st_mtime for name in SOURCES):
            done = subprocess.run([sys.executable, HERE / "make_stablehlo.py", place], capture_output=True, text=True)
            if done.returncode != 0:
                raise RuntimeError(f"make_stablehlo.py failed:\n{done.stderr[-2000:]}")
    return place
