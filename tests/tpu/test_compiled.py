"""Programs compiled ahead of time by libtpu, read by `capibara plan`; `./run test tpu` installs it. Nothing runs on a TPU."""
import json
import os
import platform
import re
import subprocess
from pathlib import Path

import pytest
from recorded_tables import ROOT, table

COMMAND = os.environ.get("CAPIBARA_COMMAND", str(ROOT / "build" / "capibara"))
FOUND = sorted((ROOT / "build" / "venv-tpu").glob("lib/python3*/site-packages/libtpu/libtpu.so"))
if platform.machine() != "x86_64":
    pytest.skip("libtpu exists for x86_64 alone", allow_module_level=True)
if not FOUND:
    pytest.skip("libtpu is not installed; ./run test tpu installs it", allow_module_level=True)


def program(rows, inner, columns, dtype="bf16"):
    left, right, result = (f"tensor<{a}x{b}x{dtype}>" for a, b in ((rows, inner), (inner, columns), (rows, columns)))
    return (f"module @p {{\n  func.func public @main(%0: {left}, %1: {right}) -> {result} {{\n"
            f"    %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : ({left}, {right}) -> {result}\n"
            f"    return %2 : {result}\n  }}\n}}\n")


def plan(tmp_path, text, *words, **environment):
    path = Path(tmp_path / "p.mlir")
    path.write_text(text)
    done = subprocess.run([COMMAND, "plan", "--program", str(path), *words], capture_output=True, text=True, timeout=600,
                          env={**os.environ, "TPU_LIBRARY_PATH": str(FOUND[0]), **environment})
    return done.returncode, done.stdout + done.stderr


def test_cycles_of_a_matmul_are_those_recorded(tmp_path):
    expected = {"generation": "v5e", "dtype": "bf16", "batch": "1", "M": "1024", "N": "1024", "K": "1024", "vmem_limit_kib": "default"}
    recorded = next(row for row in table("compiled_matmuls.tsv") if expected.items() <= row.items())
    code, text = plan(tmp_path, program(1024, 1024, 1024), "--tpu", "v5e-4", "--cycles")
    assert code == 0 and f"compiled cycles {recorded['estimated_cycles']}:" in text, text


def test_memory_is_read_before_code_is_made(tmp_path):
    code, text = plan(tmp_path, program(2048, 2048, 2048), "--tpu", "v6e-4", "--compile")
    assert code == 0
    assert float(re.search(r"([\d.]+) GiB on each device, fits", text).group(1)) == pytest.approx(3 * 2 * 2048**2 / 2**30, abs=1e-3)


def test_what_does_not_fit_is_said(tmp_path):
    code, text = plan(tmp_path, program(65536, 65536, 65536), "--tpu", "v5e-4", "--compile")
    assert code == 0 and "does not fit" in text


def test_an_offloaded_step_needs_what_that_of_jax_needs():
    """compiled_steps.tsv has the same step as lowered by jax: device and host memory agree."""
    recorded = next(row for row in table("compiled_steps.tsv") if row["name"] == "llama3_8b_v6e-64_fsdp64_b2_s8192_offload")
    done = subprocess.run([COMMAND, "plan", "--model", "llama3.1-8b", "--tpu", "v6e-64", "--mesh", "fsdp=64", "--batch", "128",
                           "--seq", "8192", "--remat", "offload", "--compile", "--json"], capture_output=True, text=True, timeout=600,
                          env={**os.environ, "TPU_LIBRARY_PATH": str(FOUND[0])})
    answer = json.loads(done.stdout)
    assert answer["compiled"]["memory_gib"] == pytest.approx(float(recorded["total_gib"]), rel=0.02)
    assert answer["compiled"]["host_gib"] == pytest.approx(float(recorded["host_gib"]), rel=1e-3)
    assert answer["host_gib"] == pytest.approx(float(recorded["host_gib"]), rel=1e-3)


def test_a_library_that_is_none_is_one_line(tmp_path):
    (tmp_path / "libtpu.so").write_text("not a library")
    code, text = plan(tmp_path, program(8, 128, 128), "--tpu", "v5e-4", "--compile", TPU_LIBRARY_PATH=str(tmp_path / "libtpu.so"))
    assert code == 1 and len([line for line in text.splitlines() if line.startswith("not compiled:")]) == 1


def test_flags_are_read_back_from_a_compiled_probe(monkeypatch):
    from capibara.jax.tpu_v4 import tpu_optimization
    monkeypatch.setenv("TPU_LIBRARY_PATH", str(FOUND[0]))
    monkeypatch.setenv("LIBTPU_INIT_ARGS", "")
    tpu_optimization.enable_all_optimizations()
    with pytest.warns(RuntimeWarning, match="not loaded"):
        verified = tpu_optimization.verify_optimizations()
    assert not verified["active"] and verified["flags"]["xla_tpu_enable_megacore_fusion"]["compiled"] == "true"
    monkeypatch.setenv("LIBTPU_INIT_ARGS", "--xla_tpu_enable_data_parallelism=true")  # aborts the child, not this process
    with pytest.warns(RuntimeWarning, match="not loaded"):
        refused = tpu_optimization.verify_optimizations()
    assert not refused["active"] and all(row["compiled"] is None for row in refused["flags"].values())
