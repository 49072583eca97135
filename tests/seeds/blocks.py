"""Definitions that the pages' code blocks need, by page and number, and checks that they did something."""

# For each block: "devices" of the CPU; "before": code that defines what the page leaves open; "after": asserts on its results;
# "says": for a block that cannot work here, a part of the line that it ends in, and "why" in a word: "machine" or "page".

_JAX = "import capibara.jax as jax\nimport capibara.jax.numpy as jnp\nimport numpy as np\n"
_RANDOM = _JAX + "def draw(seed, *shape):\n    return jax.random.normal(jax.random.key(seed), shape)\n"
_LANGUAGE_MODEL = """
from capibara import training
model = training.LanguageModel(vocabulary=260, width=32, layers=["attention+mlp"] * 4, heads=2, key_heads=2, hidden=64)
"""
# A model with weights, as a page assumes.
_TRAINED_MODEL = _LANGUAGE_MODEL + "from capibara import as_model\nmodel = as_model(model, as_model(model).init(jax.random.key(0)))\n"
_DENSE = """
keys = jax.random.split(jax.random.key(0), 2)
params = {"first": jax.random.normal(keys[0], (32, 64)) / 6, "second": jax.random.normal(keys[1], (64, 16)) / 8}
class Dense:
    def __init__(self, params):
        self.params = params
    def apply(self, params, inputs):
        return jnp.tanh(inputs @ params["first"]) @ params["second"]
    def __call__(self, inputs):
        return self.apply(self.params, inputs)
model = Dense(params)
inputs = jnp.ones((4, 32))
"""
_CONFIG = """
from capibara.core.tpu import TPUConfig
config = TPUConfig(tpu_version="v6e", num_chips=64, topology="8x8")
"""
_STEP = """
params, batch = {"w": jnp.ones((512, 512))}, jnp.ones((256, 512))
train_step = jax.jit(lambda params, batch: jnp.mean(jnp.tanh(batch @ params["w"])))
"""
_VECTORS = """
from capibara.core.tpu import TPUv6VQIntegration
vq_integration = TPUv6VQIntegration(quantization_bits=8, vector_length=512, codebook_size=1024)
train_vectors = jax.random.normal(jax.random.key(5), (2048, 512))
"""
_ML = "import capibara.jax as jax\nimport numpy as np\nimport mithril as ml\n"
_BACKEND = _ML + "backend = ml.JaxBackend(dtype=ml.float32)\n"
_COMPILED = _BACKEND + """
from mithril.models import Linear
model = Linear(dimension=64)
compiled_model = ml.compile(model=model, backend=backend, shapes={"input": [32, 128]}, jit=True)
params = compiled_model.randomize_params()
inputs = {"input": backend.randn(32, 128)}
outputs = compiled_model.evaluate(params, inputs)
"""
_SMALL = _BACKEND + "from mithril.models import Linear\nmodel = Linear(dimension=64)\n"
_TPU_CONFIG = """
import capibara.jax as jax
import capibara.jax.numpy as jnp
import numpy as np
from typing import Any, Dict, List, Tuple
from capibara.config.tpu_config import TPUConfig
from capibara.jax.experimental import mesh_utils
from capibara.jax.sharding import Mesh, PartitionSpec
tpu_config = TPUConfig(num_chips=32, topology='4x8', memory_per_chip=32 * 1024**3, flops_per_chip=275e12)
"""
_KERNELS = _RANDOM + """
from capibara.core.kernels import TPUv4Kernels
tpu_kernels = TPUv4Kernels(precision="bfloat16", optimization_level="aggressive")
"""

BLOCKS = {
    "000": {
        1: {"after": "assert custom_activations.swiglu and tpu_optimization.configure_tpu and jax.numpy.ones(2).sum() == 2"},
        2: {"after": "assert my_function(3.0) == 6 and callable(custom_prim)"},
        3: {"before": "from capibara.jax.core import custom_prim\ncustom_prim('tpu', lambda x: 2 * x)\n",
            "after": "assert y[0, 0] == 10 and z.tolist() == (2 * x).tolist()"},
        4: {"before": _RANDOM + "x, kernel = draw(0, 1, 3, 8, 8), draw(1, 4, 3, 3, 3)\n"
                      "fn = lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1])\nxs = (jnp.full(5, 0.5), jnp.arange(5.0))\n",
            "after": "assert result.shape == (1, 4, 8, 8)\nassert np.allclose(mamba_out[1], [0, 1, 2.5, 4.25, 6.125])"},
        5: {"before": _RANDOM + "x, context = draw(0, 4, 8), draw(1, 4, 3)\n",
            "after": "assert x.shape == (4, 4) and bool((x >= 0).all())"},
        6: {"before": _JAX + "class MyClass:\n    def __init__(self):\n        self.weight = jnp.ones(3)\n        self.name = 'layer'\n",
            "after": "held = tree_map(lambda v: 2 * v, MyClass())\nassert held.weight.tolist() == [2, 2, 2] and held.name == 'layer'"},
        7: {"after": "assert x.shape == (10,) and bool((abs(x) < 2).all())"},
        8: {"before": _RANDOM + "a, b = draw(0, 128, 256), draw(1, 256, 64)\ninputs, codebook = draw(2, 1000, 64), draw(3, 256, 64)\n"
                      "q, k, v = (draw(i, 1, 2, 256, 64) for i in (4, 5, 6))\n",
            "after": "assert np.allclose(output, np.asarray(a, 'f8') @ np.asarray(b, 'f8'), atol=1e-3)\nassert codes.shape == (1000,)\n"
                     "assert sparse_out.shape == q.shape"},
        9: {"after": "import os\nassert '--xla_tpu_enable_async_collective_fusion=true' in os.environ['LIBTPU_INIT_ARGS']"},
        10: {"before": _RANDOM + "inputs, A_matrix = draw(0, 2, 64, 16), -jnp.exp(draw(1, 16, 4))\n"
                       "B_matrix, C_matrix = draw(2, 2, 64, 4), draw(3, 2, 64, 4)\n",
             "after": "assert spike_output.shape == mamba_output.shape == inputs.shape\nassert set(np.unique(spike_output)) == {0, 1}"},
        11: {"prints": "Devices: [CpuDevice(id=0)]"},
        12: {"after": "x, y = jnp.ones((2, 3)), jnp.ones((3, 2))\nassert matrix_multiply(x, y).tolist() == [[3, 3], [3, 3]]\n"
                      "assert loss_fn(jnp.zeros(3), x, jnp.ones(2)).tolist() == [-2, -2, -2]\n"
                      "assert batched_fn(x[None], y[None]).shape == (1, 2, 2)"},
        13: {"before": _JAX, "after": "compiled(jnp.ones((4, 4)))", "says": "tpu", "why": "machine"},
        14: {"after": "assert my_function(jnp.arange(4.0)) == 14 and jax.__name__.startswith('capibara')"},
        15: {"plain": True, "after": "assert float(y[0, 0]) == 10 and y.shape == (10, 10)"},
        16: {"prints": "Compatible: False (", "after": "assert not is_compatible"},
        17: {"before": _JAX + "inputs = jnp.arange(3.0)\n", "after": "assert result.tolist() == [0, 2, 4]"},
        18: {"before": _JAX,
            "after": "debug_function(jnp.ones(3))\nassert static_function(2.0, 'train') == 4 and static_function(2.0, 'x') == 2",
             "prints": "Input shape: (3,)"},
        19: {"before": _JAX + "array = jnp.arange(48.0).reshape(8, 6)\n", "devices": 8,
             "after": "assert [s.data.shape for s in partitioned.addressable_shards] == [(2, 3)] * 8"},
        20: {"before": _JAX + "inputs = jnp.ones((512, 512))\nexpensive_computation = jax.jit(lambda x: jnp.tanh(x @ x))\n",
             "prints": "dot_general", "after": "import pathlib\nassert list(pathlib.Path('logs').rglob('*.xplane.pb'))"},
        21: {"after": "assert config.jax_debug_nans and config.jax_disable_jit"},
        22: {"before": _JAX + "inputs = jnp.ones((2, 3))\ndef risky_operation(x):\n    return jnp.ones((2, 3)) @ x\n",
            "prints": "risky_operation"},
        23: {"shell": True, "prints": "0.10.2"},
        24: {"prints": "CpuDevice", "said": "this machine has no TPU"},
        25: {"said": "not loaded"},
    },
    "001": {
        1: {"prints": "Total TFLOPS: 58752.0"},
        2: {"before": _JAX + _CONFIG + _LANGUAGE_MODEL, "says": "credentials: none found", "why": "machine"},
        3: {"after": "assert config.validate() == [] and config.remat_policy() == 'full' and config.param_dtype == 'float32'"},
        4: {"before": _CONFIG, "said": "not set: JAX_PLATFORMS", "after": "import os\nassert '--xla' in os.environ['LIBTPU_INIT_ARGS']"},
        5: {"shell": True, "then": 'python -c "import jax; print(jax.numpy.ones(2))"', "says": "tpu", "why": "machine"},
        6: {"before": "import capibara.jax as jax\n", "devices": 64, "after": "assert mesh.devices.shape == (8, 8)"},
        7: {"before": "from capibara.core.tpu import create_mesh\n" + _JAX + _TRAINED_MODEL, "devices": 64,
            "after": "assert sharded_model is not model and moe_mesh.devices.shape == (4, 4, 4)"},
        8: {"after": "import os\nassert 'latency_hiding' in os.environ['LIBTPU_INIT_ARGS']"},
        9: {"says": "no compiler has it", "why": "page"},
        10: {"before": _JAX + _DENSE, "says": "both a device and a backend", "why": "page"},
        11: {"before": _JAX + _LANGUAGE_MODEL, "prints": "Estimated HBM: "},
        12: {"before": _JAX + _LANGUAGE_MODEL, "after": "assert checkpointed_model is not None"},
        13: {"before": _JAX + "updated_params, updated_state = jnp.zeros(2), jnp.zeros(2)\n",
             "after": "x = jnp.ones(2)\nassert len(train_step(x, jnp.ones(2), 0)) == 2"},
        14: {"before": _JAX + _DENSE.replace("(32, 64)", "(512, 1024)").replace("(64, 16)", "(1024, 512)").replace("(4, 32)", "(4, 512)") +
             "calibration_dataset = [jax.random.normal(jax.random.key(i), (8, 512)) for i in range(3)]\n",
             "prints": "Compression ratio: "},
        15: {"before": _JAX + _DENSE + _VECTORS + "quantized_model = model\n", "seconds": 600,
             "after": "import os\nassert os.path.exists('codebooks/model_vq.pkl') and codebook.shape == (1024, 512)"},
        16: {"before": "model = '1.3b'\n", "prints": "Optimal batch size: "},
        17: {"before": _JAX + _STEP, "after": "import pathlib\nassert 'dot_general' in pathlib.Path('profiles/report.txt').read_text()"},
        18: {"before": _JAX + _STEP + "from capibara.core.tpu import TPUProfiler\nprofiler = TPUProfiler()\n"
                       "with profiler.profile('train_step'):\n    train_step(params, batch)\n", "prints": "Compute bound: "},
        19: {"before": _JAX + "dataloader = [jnp.ones((64, 64))] * 3\ntrain_step = jax.jit(lambda batch: jnp.mean(batch @ batch))\n",
             "prints": "TPU Utilization: "},
        20: {"before": _CONFIG, "prints": "(modelled)"},
        21: {"before": "from capibara.core.tpu import TPUMonitor\nmonitor = TPUMonitor()\n", "after": "assert monitor.raised_alerts == []"},
        22: {"prints": "TPU"},
        23: {"before": _JAX + _CONFIG + _TRAINED_MODEL,
            "after": "assert quantized_model is not model and config.get_performance_metrics()"},
        24: {"before": _JAX + "model = '1.3b'\ndataloader = [np.zeros(4)] * 4\n", "prints": "Issue: "},
        25: {"before": _CONFIG, "after": "assert jax.config.jax_debug_nans and jax.config.jax_disable_jit"},
        26: {"before": _RANDOM + "a, b = draw(0, 64, 32), draw(1, 32, 16)\n", "after": "assert output.shape == (64, 16)"},
        27: {"before": "import capibara.jax as jax\n", "says": "10.0.0.1:1234", "why": "machine"},
        28: {"before": _JAX + "params = {'w': jnp.ones(3)}\nopt_state = {'m': jnp.zeros(3)}\n",
             "says": "credentials: none found", "why": "machine"},
    },
    "002": {
        1: {"shell": True, "prints": "not needed"},
        2: {"says": "no device 'gpu'; there are: cpu:0", "why": "machine"},
        3: {"before": _BACKEND, "after": "assert float16_tensor.dtype == 'float16' and arange.tolist() == list(range(10))"},
        4: {"before": _BACKEND, "after": "assert float(sum_all) == 12 and matmul.shape == (3, 5)"},
        5: {"before": _BACKEND, "after": "assert concatenated.shape == (6, 4) and transposed.shape == (4, 3)"},
        6: {"after": "assert compiled_model.get_shapes()['weight'] == [64, 128]"},
        7: {"before": _COMPILED, "after": "assert output_tensor.shape == (32, 64)"},
        8: {"before": _COMPILED, "after": "assert weight_grad.shape == (64, 128) and np.allclose(bias_grad, 32)"},
        9: {"before": _SMALL, "after": "assert compiled_model.evaluate({'weight': np.ones((64, 2), 'f4'), 'bias': np.zeros(64, 'f4')}, "
                                       "{'input': np.ones((1, 2), 'f4')})['output'].shape == (1, 64)"},
        10: {"before": _ML, "devices": 4, "after": "assert backend.device_mesh == (2, 2)"},
        11: {"before": _BACKEND, "devices": 2, "after": "assert sharded_tensor.addressable_shards[0].data.shape == (64, 64)"},
        12: {"before": _ML, "devices": 2, "after": "assert outputs['output'].shape == (128, 1024)"},
        13: {"before": _BACKEND, "says": "'str' object is not callable", "why": "page"},
        14: {"before": _BACKEND, "after": "assert random_numbers.shape == (3, 4)"},
        15: {"before": _ML, "says": "no device 'gpu'; there are: cpu:0", "why": "machine"},
        16: {"before": _ML + "num_epochs = 2\nX_batch = np.random.default_rng(0).normal(size=(32, 784)).astype('f4')\n"
                       "y_batch = np.zeros((32, 10), 'f4')\ncompute_loss_gradient = lambda out, y: 2 * (out - y) / out.size\n",
             "says": "name 'outputs' is not defined", "why": "page"},
        17: {"before": _ML, "after": "assert backend.ones(2).dtype == 'float16'"},
        18: {"before": _SMALL, "prints": "parameters: "},
        19: {"before": _SMALL, "after": "assert compiled_model is not None"},
        20: {"before": _ML, "prints": "CpuDevice", "says": "no device 'gpu:0'; there are: cpu:0", "why": "machine"},
    },
    "003": {
        1: {"after": "assert tpu_config.get_total_tflops() == 8800"},
        2: {"before": _TPU_CONFIG + "tensor_shape = (16, 64)\n", "devices": 32,
            "after": "assert sharding_spec == PartitionSpec('data', 'model') and mesh.devices.shape == (4, 8)"},
        3: {"before": _TPU_CONFIG, "devices": 32, "after": "with Mesh(mesh_utils.create_device_mesh((4, 8)), ('data', 'model')):\n"
            "    assert policy(lambda x: 2 * x)(jnp.ones((8, 8))).sum() == 128"},
        4: {"before": _TPU_CONFIG, "after": "assert compute_dtype is jnp.bfloat16"},
        5: {"before": _TPU_CONFIG, "after": "assert get_sharding_spec(tpu_config, (4, 4)) == PartitionSpec('data', 'model')"},
        6: {"before": _TPU_CONFIG, "after": "try:\n    profile_tpu_usage(tpu_config)\nexcept RuntimeError as error:\n    print(error)\n"
            "found = tpu_config.profile_tpu_usage(lambda: jnp.ones((1024, 1024)) @ jnp.ones((1024, 1024)))\n"
            "assert found['device_utilization'] > 0 and found['memory_peak'] > 0", "prints": "tpu"},
        7: {"before": _TPU_CONFIG,
            "after": "load = jnp.zeros((4, 8)).at[1, 2].set(0.95)\nassert detect_hotspots(tpu_config, load) == [(1, 2)]"},
        8: {"before": _TPU_CONFIG + "batch_hotspots, hidden_hotspots = [1, 2], [1]\n", "devices": 32,
            "after": "assert optimize_sharding(tpu_config) == PartitionSpec(('data', 'model'), None)"},
    },
    "004": {
        1: {"before": _RANDOM + "q_tensor, k_tensor, v_tensor = (draw(i, 2, 4, 128, 64) for i in range(3))\n"
                      "mask = jnp.ones((2, 1, 128, 128), bool)\n", "prints": "Attention output shape: (2, 4, 128, 64)"},
        2: {"before": _KERNELS + "matrix_a, matrix_b = draw(0, 64, 48), draw(1, 32, 48)\n"
                      "tensor1, tensor2 = draw(2, 2, 3, 40, 16), draw(3, 2, 3, 24, 16)\n"
                      "batch_tensors = [draw(i, 5, 16) for i in range(4)]\n"
                      "norm_params = {'weight': draw(8, 16), 'bias': draw(9, 16), 'eps': 1e-5}\n",
            "after": "assert matmul_result.shape == (64, 32) and einsum_result.shape == (2, 3, 40, 24) and len(batch_ops) == 4"},
        3: {"before": _KERNELS +
            "input_tokens, hidden_states, norm_weight, norm_bias = draw(0, 64, 32), draw(1, 8, 64), draw(2, 64), draw(3, 64)\n"
                      "ffn_intermediate = draw(4, 128, 256)\n",
            "after": "assert moe_routing_result.experts.shape == (64, 4) and layer_norm_result.shape == (8, 64)\n"
                     "assert ffn_intermediate.is_deleted() and bool((fused_activation == 0).any())"},
        4: {"before": _KERNELS, "prints": "Throughput: "},
    },
}
