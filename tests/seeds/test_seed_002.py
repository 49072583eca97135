"""The blocks of seed 002, Mithril's JAX backend, each as a test; README.md says which block is where."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = (os.environ.get("CAPIBARA_PYTHON_PATH")
           or str(Path(os.environ.get("CAPIBARA_BUILD", ROOT / "build" / "release")) / "python"))
sys.path.insert(0, MODULES)

import capibara.jax as jax  # noqa: E402
import capibara.jax.numpy as jnp  # noqa: E402
import capibara.mithril as ml  # noqa: E402
from capibara.mithril.models import Linear, Model  # noqa: E402

HEAD = "import numpy as np, capibara.jax as jax\njax.install()\nimport capibara.mithril as ml\n"


def run(program, devices=1):
    """The lines that a program prints in a process with this many CPU devices; `import jax` imports ours."""
    done = subprocess.run([sys.executable, "-c", HEAD + program], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": MODULES, "JAX_NUM_CPU_DEVICES": str(devices), "JAX_PLATFORMS": "cpu"})
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def close(got, want, tolerance=1e-5):
    np.testing.assert_allclose(np.asarray(got, "float64"), np.asarray(want, "float64"), rtol=tolerance, atol=tolerance)


@pytest.fixture
def backend():
    return ml.JaxBackend(dtype=ml.float32)


@pytest.fixture
def linear(backend):
    model = Linear(dimension=64)
    return ml.compile(model=model, backend=backend, shapes={"input": [32, 128]}, jit=True)


# --- block 2: creating a backend -------------------------------------------------------------------------------------


def test_creating_backends():
    assert ml.JaxBackend(dtype=ml.float32).ones(2).dtype == jnp.float32
    assert ml.JaxBackend(dtype=ml.float64).ones(2).dtype == jnp.float64
    assert ml.JaxBackend(jit=True).jit
    assert ml.JaxBackend(device="cpu").device.platform == "cpu"


def test_a_device_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(RuntimeError, match=r"no device 'gpu:7'; there are: cpu:0"):
        ml.JaxBackend(device="gpu:7")


# --- block 3: creating tensors ---------------------------------------------------------------------------------------


def test_creating_tensors(backend):
    zeros = backend.zeros(3, 4)
    ones = backend.ones(3, 4)
    assert zeros.shape == ones.shape == (3, 4) and float(zeros.sum()) == 0 and float(ones.sum()) == 12

    randn = backend.randn(3, 4)
    rand = backend.rand(3, 4)
    assert randn.shape == rand.shape == (3, 4) and 0 <= float(rand.min()) <= float(rand.max()) < 1

    numpy_array = np.random.randn(3, 4)
    jax_tensor = backend.array(numpy_array)
    close(jax_tensor, numpy_array)
    assert jax_tensor.dtype == jnp.float32

    assert backend.arange(10).tolist() == list(range(10))
    assert backend.ones(3, 4, dtype=ml.float16).dtype == jnp.float16
    assert backend.ones(3, 4, dtype=ml.int32).dtype == jnp.int32


# --- block 4: mathematical operations --------------------------------------------------------------------------------


def test_mathematical_operations(backend):
    a = backend.ones(3, 4)
    b = backend.ones(3, 4)
    close(backend.add(a, b), np.full((3, 4), 2))
    close(backend.subtract(a, b), np.zeros((3, 4)))
    close(backend.multiply(a, b), np.ones((3, 4)))
    close(backend.divide(a, b), np.ones((3, 4)))
    close(backend.matmul(backend.ones(3, 4), backend.ones(4, 5)), np.full((3, 5), 4))
    assert float(backend.sum(a)) == 12 and backend.sum(a, axis=0).tolist() == [3] * 4
    assert float(backend.mean(a)) == 1 and float(backend.max(a)) == 1
    close(backend.relu(-a), np.zeros((3, 4)))
    close(backend.sigmoid(a), 1 / (1 + np.exp(-np.ones((3, 4)))))
    close(backend.tanh(a), np.tanh(np.ones((3, 4))))


# --- block 5: shapes -------------------------------------------------------------------------------------------------


def test_shape_manipulation(backend):
    assert backend.reshape(backend.ones(12), (3, 4)).shape == (3, 4)
    assert backend.transpose(backend.ones(3, 4)).shape == (4, 3)
    concatenated = backend.concat([backend.ones(3, 4), backend.ones(3, 4)], axis=0)
    assert concatenated.shape == (6, 4)


# --- blocks 6, 7, 8: compile, run, differentiate ---------------------------------------------------------------------


def test_compile_and_run(backend, linear):
    params = linear.randomize_params()
    inputs = {"input": backend.randn(32, 128)}
    outputs = linear.evaluate(params, inputs)
    output_tensor = outputs["output"]
    close(output_tensor, np.asarray(inputs["input"]) @ np.asarray(params["weight"]).T + np.asarray(params["bias"]), 1e-3)
    assert linear.get_shapes()["weight"] == [64, 128]


def test_gradients(backend, linear):
    params = linear.randomize_params()
    inputs = {"input": backend.randn(32, 128)}
    outputs = linear.evaluate(params, inputs)
    output_gradients = {"output": backend.ones_like(outputs["output"])}
    outputs, gradients = linear.evaluate(params, inputs, output_gradients=output_gradients)
    close(gradients["weight"], np.ones((64, 32)) @ np.asarray(inputs["input"], "float64"), 1e-3)
    close(gradients["bias"], np.full(64, 32))


# --- block 9: jit ----------------------------------------------------------------------------------------------------


def test_enabling_jit():
    model = Linear(dimension=64)
    compiled_model = ml.compile(model=model, backend=ml.JaxBackend(jit=True), jit=True)
    eager = ml.compile(model=model, backend=ml.JaxBackend(), jit=False)
    params = {"weight": np.ones((64, 3), "float32"), "bias": np.zeros(64, "float32")}
    data = {"input": np.arange(6, dtype="float32").reshape(2, 3)}
    close(compiled_model.evaluate(params, data)["output"], eager.evaluate(params, data)["output"])


# --- blocks 10, 11, 12: meshes ---------------------------------------------------------------------------------------


def test_device_meshes():
    assert run("""
print(ml.JaxBackend(device_mesh=(2,)).device_mesh, ml.JaxBackend(device_mesh=(2, 2)).device_mesh)
""", devices=4) == ["(2,) (2, 2)"]


def test_a_mesh_of_too_many_devices_says_how_to_get_them():
    with pytest.raises(RuntimeError, match="needs 1024 devices"):
        ml.JaxBackend(device_mesh=(1024,))


def test_sharded_tensors():
    assert run("""
backend = ml.JaxBackend()
sharded_tensor = backend.ones(128, 64, device_mesh=(2,))
print(sharded_tensor.addressable_shards[0].data.shape, len(sharded_tensor.addressable_shards))
sharded_tensor = backend.ones(128, 64, device_mesh=(2,), tensor_split=(0,))
print(sharded_tensor.addressable_shards[1].data.shape)
sharded_tensor = backend.ones(128, 64, device_mesh=(2,), tensor_split=(1,))
print(sharded_tensor.addressable_shards[1].data.shape, float(sharded_tensor.sum()))
""", devices=2) == ["(64, 64) 2", "(64, 64)", "(128, 32) 8192.0"]


def test_parallel_evaluation():
    lines = run("""
model = ml.models.MLP(input_size=1024, hidden_sizes=[2048, 2048], output_size=1024)
backend = ml.JaxBackend(device_mesh=(2,))
compiled_model = ml.compile(model, backend)
params = compiled_model.randomize_params()
batch_size = 128
inputs = {"input": backend.ones(batch_size, 1024, device_mesh=(2,), tensor_split=(0,))}
outputs = compiled_model.evaluate(params, inputs)
print(outputs["output"].shape, params["weight0"].shape, params["weight0"].addressable_shards[0].data.shape,
      [shard.data.shape for shard in inputs["input"].addressable_shards])
x = np.ones((1, 1024))
for i in range(3):  # the rows are equal
    x = x @ np.asarray(params[f"weight{i}"], "float64").T + np.asarray(params[f"bias{i}"], "float64")
    x = np.maximum(x, 0) if i < 2 else x
print(bool(np.abs(np.asarray(outputs["output"]) - x).max() < 1e-4 * np.abs(x).max()))
""", devices=2)
    assert lines == ["(128, 1024) (2048, 1024) (1024, 1024) [(64, 1024), (64, 1024)]", "True"]


# --- block 13: a custom operation ------------------------------------------------------------------------------------


def test_custom_operation(backend):
    @backend.register_op("gelu")
    def gelu_jax(x):
        return 0.5 * x * (1 + jnp.tanh(jnp.sqrt(2 / jnp.pi) * (x + 0.044715 * x**3)))

    model = Model()
    model |= Linear(dimension=64)(input="input", output="hidden")
    model += backend.op("gelu")(input="hidden", output="hidden_act")
    model += Linear(dimension=10)(input="hidden_act", output="output")
    compiled = ml.compile(model, backend, shapes={"input": [4, 8]})
    params = compiled.randomize_params()
    data = {"input": backend.randn(4, 8)}
    outputs, gradients = compiled.evaluate(params, data, output_gradients={"output": backend.ones(4, 10)})

    def plain(p):
        hidden = data["input"] @ p["weight_0"].T + p["bias_0"]
        return jax.nn.gelu(hidden, approximate=True) @ p["weight_1"].T + p["bias_1"]

    close(outputs["output"], plain(params), 1e-3)
    want = jax.grad(lambda p: plain(p).sum())(params)
    for key, value in want.items():
        close(gradients[key], value, 1e-2)


# --- block 14: random numbers ----------------------------------------------------------------------------------------


def test_random_numbers(backend):
    backend.set_seed(42)
    key = backend.get_random_key()
    new_key, subkey = backend.split_key(key)
    random_numbers = backend.random_normal(subkey, shape=(3, 4))
    assert random_numbers.shape == (3, 4)
    backend.set_seed(42)
    _, again = backend.split_key(backend.get_random_key())
    assert backend.random_normal(again, shape=(3, 4)).tolist() == random_numbers.tolist()


# --- block 15: options -----------------------------------------------------------------------------------------------


def test_options():
    backend = ml.JaxBackend(precision=jax.lax.Precision.HIGHEST, debug=True, platform="cpu", jit=True)
    model = Model()
    model |= ml.models.Log()(input="x", output="y")
    compiled = ml.compile(model, backend)
    close(compiled.evaluate({}, {"x": np.ones(3, "float32")})["y"], np.zeros(3))
    with pytest.raises(FloatingPointError):  # debug names the operation that produced a NaN
        compiled.evaluate({}, {"x": np.full(3, -1, "float32")})


# --- block 16: optax -------------------------------------------------------------------------------------------------


def test_optax_training():
    pytest.importorskip("optax")
    lines = run("""
import optax

model = ml.models.MLP(input_size=784, hidden_sizes=[256, 128], output_size=10)
backend = ml.JaxBackend(dtype=ml.float32)
compiled_model = ml.compile(model, backend)
params = compiled_model.randomize_params(seed=1)  # N(0, 1), as in Mithril
optimizer = optax.adam(learning_rate=0.001)
opt_state = optimizer.init(params)
backend.set_seed(0)
X_batch = backend.randn(64, 784)
y_batch = X_batch[:, :10]

def compute_loss_gradient(output, target):
    return 2 * (output - target) / output.size

losses = []
for epoch in range(100):
    inputs = {"input": backend.array(X_batch)}
    outputs = compiled_model.evaluate(params, inputs)
    losses.append(float(((outputs["output"] - y_batch) ** 2).mean()))
    outputs, gradients = compiled_model.evaluate(
        params,
        inputs,
        output_gradients={"output": compute_loss_gradient(outputs["output"], y_batch)}
    )
    updates, opt_state = optimizer.update(gradients, opt_state)
    params = optax.apply_updates(params, updates)
print(losses[0], losses[-1])
import sys
print("jaxlib" in sys.modules)
""")
    first, last = map(float, lines[0].split())
    # Weights of N(0, 1) give outputs of thousands: the first loss is large, and falls.
    assert first > 1e5 and last < 0.2 * first
    assert lines[1] == "False"  # optax ran on capibara


# --- blocks 17 to 20: memory, shapes, speed, devices -----------------------------------------------------------------


def test_lower_precision():
    backend = ml.JaxBackend(dtype=ml.float16)
    compiled = ml.compile(Linear(4), backend, shapes={"input": [2, 3]})
    params = compiled.randomize_params()
    assert params["weight"].dtype == jnp.float16
    assert compiled.evaluate(params, {"input": backend.ones(2, 3)})["output"].dtype == jnp.float16


def test_verbose_prints_the_shapes(backend, capsys):
    ml.compile(Linear(64), backend, shapes={"input": [32, 128]}, verbose=True)
    printed = capsys.readouterr().out
    assert "parameters: 8,256" in printed and "[32, 64]" in printed


def test_listing_devices(capsys):
    print(jax.devices())
    assert "Cpu" in capsys.readouterr().out or jax.devices()[0].platform == "cpu"
