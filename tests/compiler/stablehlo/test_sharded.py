"""jax's own texts over eight devices give jax's values here, and jaxlib verifies the text that we write for them."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BUILD = Path(os.environ.get("CAPIBARA_BUILD", ROOT / "build" / "release"))
COMMAND = Path(os.environ.get("CAPIBARA_COMMAND", BUILD / "capibara"))
sys.path.append(str(ROOT / "tests" / "data"))

import recordings  # noqa: E402

TEXTS = recordings.texts("sharded")

pytestmark = pytest.mark.skipif(not COMMAND.exists(), reason=f"{COMMAND} is not built")


def start(*command, **environment):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, env=dict(os.environ, **environment))


def check(folder, **environment):
    done = start(COMMAND, "check", folder, **environment)
    passed, failed, skipped = (int(part.split()[0]) for part in done.stdout.strip().splitlines()[-1].split(","))
    assert (failed, skipped) == (0, 0), done.stdout[-4000:]
    return passed


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The folder with jax's texts."""
    return recordings.unpack("sharded", tmp_path_factory.mktemp("recorded"))


@pytest.fixture(scope="module")
def rewritten(recorded, tmp_path_factory):
    """Our text of each, which must be a fixed point of reading and writing."""
    folder = tmp_path_factory.mktemp("rewritten")
    for name in TEXTS:
        once = start(COMMAND, "show", "--stablehlo", recorded / name)
        assert once.returncode == 0, f"{name}: {once.stderr}"
        written = folder / name
        written.write_text(once.stdout)
        assert start(COMMAND, "show", "--stablehlo", written).stdout == once.stdout, name
    return folder


def test_texts_of_jax_run_to_its_values(recorded):
    assert check(recorded) == len(TEXTS) >= 50


def test_devices_one_by_one_agree(recorded):
    assert check(recorded, JAX_PLATFORMS="reference") == len(TEXTS)


def test_what_we_write_of_them_runs_to_the_same_values(rewritten):
    assert check(rewritten) == len(TEXTS)


def test_manual_computations_and_collectives_stay(rewritten):
    """Checks for as many of each as in jax's text: nothing is unrolled over devices."""
    names = ("sdy.manual_computation", "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute")
    for file, theirs in TEXTS.items():
        ours = (rewritten / file).read_text()
        for name in names:
            # jax writes a function that several maps call once; we write it once for each mesh.
            assert (theirs.count(name) > 0) == (ours.count(name) > 0), f"{file}: {name}"


def test_jaxlib_verifies_what_we_write(rewritten):
    pytest.importorskip("jax")
    program = """
import sys, pathlib
from jax._src.interpreters import mlir
from jax._src.lib.mlir import ir
context = mlir.make_ir_context()
with context:
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.mlir")):
        module = ir.Module.parse(path.read_text())
        assert module.operation.verify(), path.name
        print(path.name)
"""
    done = start(sys.executable, "-c", program, rewritten, JAX_PLATFORMS="cpu")
    assert done.returncode == 0, done.stdout[-300:] + done.stderr[-3000:]
    assert len(done.stdout.split()) == len(TEXTS)
