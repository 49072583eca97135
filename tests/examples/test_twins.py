"""Each example exists in C++ and in Python, and both print the same."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CAPIBARA_BUILD", ROOT / "build" / "release"))
TWINS = sorted((ROOT / "examples").glob("[0-9]*.py"))


def output(command):
    path = os.environ.get("CAPIBARA_PYTHON_PATH", str(BUILD / "python"))
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_every_numbered_example_has_a_twin():
    programs = {path.stem for path in (ROOT / "examples").glob("[0-9]*.cpp")}
    assert programs == {path.stem for path in TWINS}
    assert {stem[:2] for stem in programs} >= {f"{number:02d}" for number in range(1, 9)}


@pytest.mark.parametrize("twin", TWINS, ids=lambda path: path.stem)
def test_twins_print_the_same(twin):
    assert output([sys.executable, twin]) == output([BUILD / "examples" / twin.stem])
