"""The table of GPU kernels: processes that take too long or die, floors that are reached or missed, and a whole run."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CAPIBARA_BUILD", ROOT / "build" / "release"))
sys.path.insert(0, str(ROOT / "benchmarks" / "gpu"))

import kernel_table  # noqa: E402
from processes import Answering, lines  # noqa: E402

ECHO = """
import json, sys, time
for line in sys.stdin:
    request = json.loads(line)
    time.sleep(request.get("seconds", 0))
    if "end" in request:
        sys.exit(request["end"])
    print(json.dumps({"got": request}), flush=True)
"""


@pytest.fixture
def echo():
    process = Answering([sys.executable, "-c", ECHO], dict(os.environ))
    yield process
    process.end()


def soon(seconds=30):
    return time.monotonic() + seconds


def test_an_answer_that_waits_is_read_after_the_deadline(echo):
    echo.ask(a=1)
    assert echo.answer(soon()) == {"got": {"a": 1}}
    echo.ask(a=2)
    time.sleep(1)
    assert echo.answer(time.monotonic() - 1) == {"got": {"a": 2}}


def test_a_process_that_takes_too_long_is_ended_and_the_next_question_starts_another(echo):
    echo.ask(seconds=60)
    assert echo.answer(soon(0.3)) == {"error": "too long: stopped"}
    assert echo.process is None
    echo.ask(a=3)
    assert echo.answer(soon()) == {"got": {"a": 3}}


def test_a_process_that_dies_leaves_its_last_words(echo):
    echo.ask(end="no such device")
    assert echo.answer(soon()) == {"error": "died: no such device"}


def test_lines_come_until_the_time_is_over(capfd):
    program = "import time; print(1, flush=True); print(2, flush=True); time.sleep(60)"
    start = time.monotonic()
    assert list(lines([sys.executable, "-c", program], dict(os.environ), 5)) == ["1", "2"]
    assert time.monotonic() - start < 30
    assert "stopped after 5 s" in capfd.readouterr().err


def a_record(**changes):
    record = {"name": "product", "seconds": {"capibara": 1e-3, "jax": 5e-3, "cudnn": 0.9e-3}, "share": 0.5, "backward": None,
              "temporaries": {"capibara": 5, "jax": 100}, "difference": None, "failed": {}, "floors": []}
    record.update(changes)
    return record


@pytest.mark.parametrize("floor, said", [
    (("jax", 4), ">= 4x jax: reached"),
    (("jax", 10), ">= 10x jax: **missed**"),
    (("cudnn", 0.97), ">= 0.97x cuDNN: **missed**"),
    (("us", 1000.5), "<= 1e+03 us: reached"),
    (("memory", 0.05), "<= 5.00% of jax's temporaries: reached"),
    (("memory", 0.04), "<= 4.00% of jax's temporaries: **missed**"),
    (("backward", 0.8), ">= backward 80%: not measured"),
    ((("jax", 8), ("limit", 0.5)), ">= 8x jax or >= 50% of the limit: reached"),
    ((("jax", 8), ("backward", 0.5)), ">= 8x jax or >= backward 50%: not measured"),
])
def test_floors(floor, said):
    assert kernel_table.verdict(a_record(), floor) == said


def test_a_line_says_who_failed():
    line = kernel_table.line(a_record(failed={"torch": "RuntimeError: no", "jax": "JaxRuntimeError: RESOURCE_EXHAUSTED: x"},
                                      seconds={"capibara": 2e-4}))
    assert line.startswith("| product | 200 us | out of memory |  | RuntimeError | 50% |")


@pytest.mark.skipif(not list((BUILD / "python").glob("capibara/_core*")), reason="the Python package is not built")
def test_a_run_measures_rows_and_names_those_it_did_not_reach(tmp_path):
    command = [sys.executable, ROOT / "benchmarks" / "gpu" / "kernels.py", "--small", "--quick", "--libraries", "capibara", "--json",
               tmp_path / "kernels.json", "--package", BUILD / "python", "softmax"]
    environment = dict(os.environ, JAX_PLATFORMS="cpu")
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment, timeout=300)
    kept = json.loads((tmp_path / "kernels.json").read_text())
    assert [row["name"] for row in kept["rows"]] == ["softmax 8x100 f32", "softmax 8x100 f32 with gradient"], done.stderr
    assert all(row["seconds"]["capibara"] > 0 and not row["failed"] for row in kept["rows"]) and not kept["missing"]
    done = subprocess.run([*map(str, command), "--seconds", "0"], capture_output=True, text=True, env=environment, timeout=300)
    assert "Not reached within 0.0 s: softmax 8x100 f32; softmax 8x100 f32 with gradient." in done.stdout
