"""Blocks 8, 9, 13, 24 and 25 of seed 000: settings of the TPU compiler. Nothing runs on a TPU."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = (os.environ.get("CAPIBARA_PYTHON_PATH")
           or str(Path(os.environ.get("CAPIBARA_BUILD", ROOT / "build" / "release")) / "python"))
sys.path.insert(0, MODULES)

import capibara.jax as jax  # noqa: E402


@pytest.fixture
def tpu_environment(monkeypatch):
    monkeypatch.setenv("LIBTPU_INIT_ARGS", "")
    precision = jax.config.jax_default_matmul_precision
    yield
    jax.config.update("jax_default_matmul_precision", precision)


def test_configure_tpu(tpu_environment):
    from capibara.jax.tpu_v4 import tpu_optimization

    done = tpu_optimization.configure_tpu(tpu_type="v6e-64", use_bf16=True, enable_flash_attention=True, enable_collective_ops=True)
    assert done["slice"]["topology"] == "v6e:8x8" and not done["flags"]["refused"]
    with pytest.raises(ValueError, match="cannot be rented"):
        tpu_optimization.configure_tpu(tpu_type="v6e-65")


def test_setup_tpu_v4(tpu_environment, monkeypatch, caplog):
    from capibara.jax.tpu_v4 import setup_tpu_v4

    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    done = setup_tpu_v4(tpu_name="capibara-tpu-v6e", mesh_shape=(8, 8), enable_xla_flags=True, enable_async_collective=True)
    assert done["mesh"] is None and "64 devices" in done["mesh_problem"]
    assert done["environment"]["JAX_PLATFORMS"] == "not set: this machine has no TPU" and "JAX_PLATFORMS" not in os.environ
    said, = caplog.messages
    assert said.startswith("setup_tpu_v4: set LIBTPU_INIT_ARGS; not set: JAX_PLATFORMS (this machine has no TPU), XLA_FLAGS (")
    assert said.endswith("no mesh: a mesh of (8, 8) needs 64 devices; here are 1")
    assert "--xla_tpu_enable_async_collective_fusion=true" in os.environ["LIBTPU_INIT_ARGS"]
    assert setup_tpu_v4()["summary"]


def test_all_optimizations_can_be_verified(tpu_environment):
    from capibara.jax.tpu_v4 import tpu_optimization

    tpu_optimization.enable_all_optimizations()
    with pytest.warns(RuntimeWarning, match="verify_optimizations: not loaded: libtpu is not loaded in this process"):
        verified = tpu_optimization.verify_optimizations()  # Verifica que estén activas
    assert not verified["active"] and not verified["loaded"]
    assert len(verified["flags"]) >= 5 and all(row["known"] and row["value"] is None for row in verified["flags"].values())
