"""Tests that the installed jaxlib accepts our StableHLO text and computes our values, and that we read jax's own text."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("CAPIBARA_BUILD", ROOT / "build" / "release"))
COMMAND = Path(os.environ.get("CAPIBARA_COMMAND", BUILD / "capibara"))
ORACLE = ROOT / "tests" / "oracle"

sys.path.append(str(ORACLE))
import texts  # noqa: E402

pytest.importorskip("jax")
pytestmark = pytest.mark.skipif(not COMMAND.exists(), reason=f"{COMMAND} is not built")


def start(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True)


def judge(*arguments):
    done = start(sys.executable, ORACLE / "judge.py", *arguments, "--jobs", os.cpu_count() or 1)
    lines = done.stdout.strip().splitlines()
    assert done.returncode == 0, "\n".join(lines[-40:]) + done.stderr[-2000:]
    return int(lines[-1].split()[0])


@pytest.fixture(scope="module")
def functions():
    """jax's own text of 372 functions, with inputs and outputs."""
    return texts.folder(BUILD)


def rewritten(files, folder):
    """Our text for each file, which must be a fixed point of reading and writing."""
    folder.mkdir()
    unstable = []
    for text in files:
        once = start(COMMAND, "show", "--stablehlo", text)
        assert once.returncode == 0, f"{text.name}: {once.stderr}"
        written = folder / text.name.replace(".generic.mlir", ".mlir")
        written.write_text(once.stdout)
        again = start(COMMAND, "show", "--stablehlo", written)
        assert again.returncode == 0, f"{text.name}: {again.stderr}"
        if again.stdout != once.stdout:
            unstable.append(text.name)
    assert not unstable
    return len(files)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["pretty", "generic"])
def test_jaxlib_runs_what_we_write_of_what_we_read(functions, tmp_path, form):
    files = [t for t in sorted(functions.glob("*.mlir")) if t.name.endswith(".generic.mlir") == (form == "generic")]
    assert len(files) >= 150
    folder = tmp_path / form
    assert rewritten(files, folder) == len(files)
    for arrays in functions.glob("*.arrays"):
        (folder / arrays.name).write_text(arrays.read_text())
    assert judge(folder) == len(files)


@pytest.mark.slow
def test_we_evaluate_jax_text_to_jax_values(functions):
    done = start(COMMAND, "check", functions / "check")
    passed, failed, skipped = (int(part.split()[0]) for part in done.stdout.strip().splitlines()[-1].split(","))
    assert failed == 0, done.stdout[-4000:]
    assert passed >= 150
    assert skipped <= 3, done.stdout[-4000:]


@pytest.mark.slow
def test_jaxlib_agrees_on_every_primitive(tmp_path):
    program = BUILD / "tests" / "stablehlo_texts_program"
    if not program.exists():
        pytest.skip(f"{program} is not built")
    bundle = tmp_path / "texts.bundle"
    done = start(program, bundle)
    assert done.returncode == 0, done.stderr
    assert judge(bundle) == int(done.stdout.split()[0])


def test_one_text_by_hand(tmp_path):
    folder = tmp_path / "one"
    folder.mkdir()
    source = tmp_path / "source.mlir"
    source.write_text("""
func.func public @main(%x: tensor<2x3xf32>) -> tensor<3xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
  return %sum : tensor<3xf32>
}
""")
    (folder / "sum.mlir").write_text(start(COMMAND, "show", "--stablehlo", source).stdout)
    (folder / "sum.arrays").write_text(
        "record sum\n"
        "array input float32[2,3] strong 0000803f0000004000004040000080400000a0400000c040\n"
        "array output float32[3] strong 0000a0400000e04000001041\nend\n")
    assert judge(folder) == 1
