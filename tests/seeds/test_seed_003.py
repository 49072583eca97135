"""The blocks of seed 003, capibara.config.tpu_config, each as a test; README.md says which block is where."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = (os.environ.get("CAPIBARA_PYTHON_PATH")
           or str(Path(os.environ.get("CAPIBARA_BUILD", ROOT / "build" / "release")) / "python"))
sys.path.insert(0, MODULES)

import capibara.jax.numpy as jnp  # noqa: E402
from capibara.config.tpu_config import TPUConfig, TPUError  # noqa: E402
from capibara.jax.sharding import PartitionSpec  # noqa: E402


@pytest.fixture
def tpu_config():
    return TPUConfig(
        num_chips=32,
        topology='4x8',
        memory_per_chip=32 * 1024**3,  # 32GB HBM
        flops_per_chip=275e12,  # 275 TFLOPS
        compute_dtype='bfloat16',
        param_dtype='float32'
    )


def test_block_1_configuration(tpu_config):
    assert tpu_config.validate() == ["32 v4 chips are v4-64 = 2x4x4; the topology 4x8 is taken as the logical mesh"]
    assert tpu_config.get_total_tflops() == 8800 and tpu_config.slice_name == "v4-64"


def test_block_2_sharding(tpu_config):
    for tensor_shape, spec in (((16, 64), ("data", "model")), ((16, 7, 64), ("data", None, "model")),
                               ((16, 2, 3, 64), ("data", None, None, "model"))):
        assert tpu_config.get_sharding_spec(tensor_shape) == PartitionSpec(*spec)


def test_block_3_and_4_precision_and_memory(tpu_config):
    assert tpu_config.use_mixed_precision
    memory_config = tpu_config.get_memory_config()
    if memory_config['use_mixed_precision']:
        compute_dtype, param_dtype = jnp.bfloat16, jnp.float32
    assert (memory_config["compute_dtype"], memory_config["param_dtype"]) == (np.dtype(compute_dtype).name, np.dtype(param_dtype).name)
    assert memory_config["memory_per_chip"] == 32 * 1024**3


def test_block_7_hotspots(tpu_config):
    load = jnp.zeros((4, 8)).at[1, 2].set(0.95).at[3, 7].set(0.85)
    assert tpu_config.detect_hotspots(load) == [(1, 2), (3, 7)]
    tpu_config.scaling_config.load_threshold = 0.9
    assert tpu_config.detect_hotspots(load) == [(1, 2)]
    with pytest.raises(TPUError, match="matrix"):
        tpu_config.detect_hotspots(jnp.zeros(4))


def test_block_8_optimized_sharding(tpu_config):
    with pytest.raises(TPUError, match="detect_hotspots"):
        tpu_config.optimize_sharding()
    rows = np.zeros((4, 8))
    rows[:, 0] = 1
    assert tpu_config.optimize_sharding(rows) == PartitionSpec(("data", "model"), None)
    columns = np.zeros((4, 8))
    columns[0] = 1
    assert tpu_config.optimize_sharding(columns) == PartitionSpec(None, ("data", "model"))
