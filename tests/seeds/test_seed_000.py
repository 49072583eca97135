"""The blocks of seed 000 that speak of capibara.jax itself, each as a test; README.md says which block is where."""

import dataclasses
import math
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


def equal(array, values, tolerance=1e-5):
    np.testing.assert_allclose(np.asarray(array), np.asarray(values), rtol=tolerance, atol=tolerance)


@pytest.fixture
def flags():
    """Restores changed flags."""
    names = ("jax_debug_mode", "jax_debug_nans", "jax_debug_infs", "jax_log_compiles", "jax_disable_jit")
    before = {name: getattr(jax.config, name) for name in names}
    yield names
    for name, value in before.items():
        jax.config.update(name, value)


# --- block 1: imports ------------------------------------------------------------------------------------------------


def test_imports():
    import capibara.jax as jax
    from capibara.jax import custom_activations

    assert jax.__version__ == "0.10.2"
    x = jnp.array([1.0, -2.0, 3.0, 0.5])
    equal(custom_activations.swiglu(x), jax.nn.swiglu(x))
    equal(custom_activations.contextual_relu(x, x), jax.nn.contextual_relu(x, x))


# --- block 2: core ---------------------------------------------------------------------------------------------------


def test_custom_jit_and_custom_prim():
    from capibara.jax import core

    @core.custom_jit
    def my_function(x):
        return x * 2

    equal(my_function(jnp.arange(3.0)), [0, 2, 4])

    from capibara.jax.core import custom_prim

    triple = custom_prim("seed_triple", lambda x: x * 3, abstract_eval=lambda x: x)
    equal(triple.bind(jnp.arange(3.0)), [0, 3, 6])
    assert "seed_triple" in str(jax.make_jaxpr(triple.bind)(1.0))


# --- block 3: numpy --------------------------------------------------------------------------------------------------


def test_numpy():
    from capibara.jax import numpy as jnp

    x = jnp.ones((10, 10))
    y = jnp.dot(x, x)
    equal(y, np.full((10, 10), 10.0))

    # The extension uses the user's primitive of that name.
    with pytest.raises(ValueError, match="no primitive is registered as 'tpu'.*register one first, by @core.custom_prim"):
        jnp.custom_op(x, optimization="tpu")
    from capibara.jax.core import custom_prim
    custom_prim("tpu", lambda x: x + 1, abstract_eval=lambda x: x)
    z = jnp.custom_op(x, optimization="tpu")
    equal(z, np.full((10, 10), 2.0))


# --- block 4: lax ----------------------------------------------------------------------------------------------------


def test_lax():
    from capibara.jax import lax

    x = jnp.arange(16.0).reshape(1, 1, 4, 4)
    kernel = jnp.ones((1, 1, 3, 3))
    result = lax.conv_general_dilated(
        x, kernel,
        window_strides=(1, 1),
        padding="SAME"
    )
    assert result.shape == (1, 1, 4, 4)
    equal(result[0, 0, 1, 1], 45.0)

    def fn(left, right):
        return left[0] * right[0], right[0] * left[1] + right[1]

    xs = (jnp.full(5, 0.5), jnp.arange(5.0))
    mamba_out = lax.associative_scan(
        fn, xs,
        tpu_optimized=True
    )
    equal(mamba_out[1], [0, 1, 2.5, 4.25, 6.125])
    equal(mamba_out[1], lax.associative_scan(fn, xs)[1])


# --- block 5: nn -----------------------------------------------------------------------------------------------------


def test_nn():
    from capibara.jax import nn

    x = jnp.array([-1.0, 0.0, 1.0, 2.0])
    x = nn.relu(x)
    equal(x, [0, 0, 1, 2])
    x = nn.gelu(x)
    equal(x, [0, 0, 0.841192, 1.954598], 1e-4)

    # swiglu: silu of the first half times the second half.
    x = jnp.array([1.0, -2.0, 3.0, 0.5])
    equal(nn.swiglu(x), [3.0 / (1 + math.exp(-1.0)), 0.5 * -2.0 / (1 + math.exp(2.0))])
    # contextual_relu: relu(x - tanh(mean of the context's last axis)).
    context = jnp.array([0.5, 1.5])
    equal(nn.contextual_relu(x, context), np.maximum(np.asarray(x) - math.tanh(1.0), 0))
    equal(jax.grad(lambda c: nn.contextual_relu(x, c).sum())(context), np.full(2, -(1 - math.tanh(1.0) ** 2)))


# --- block 6: trees --------------------------------------------------------------------------------------------------


def test_tree_util():
    from capibara.jax import tree_util

    tree_map = tree_util.tree_map
    tree_reduce = tree_util.tree_reduce
    assert tree_map(lambda v: v + 1, {"a": 1, "b": [2]}) == {"a": 2, "b": [3]}
    assert tree_reduce(lambda a, b: a + b, {"a": 1, "b": [2, 3]}) == 6

    class MyClass:
        def __init__(self, value, name):
            self.value, self.name = value, name

        def tree_flatten(self):
            return (self.value,), self.name

        @classmethod
        def tree_unflatten(cls, name, children):
            return cls(*children, name)

    tree_util.register_custom_pytree(MyClass)
    held = tree_map(lambda v: v * 2, MyClass(jnp.arange(3.0), "weights"))
    equal(held.value, [0, 2, 4])
    assert held.name == "weights"
    equal(jax.grad(lambda held: (held.value**2).sum())(MyClass(jnp.ones(2), "w")).value, [2, 2])


def test_plain_classes_and_dataclasses_are_pytrees():
    from capibara.jax import tree_util

    class Plain:
        def __init__(self):
            self.weight, self.name, self.activation, self.inner = jnp.ones(2), "layer", jnp.tanh, {"bias": jnp.zeros(1)}

    assert tree_util.register_custom_pytree(Plain) is Plain
    doubled = jax.jit(lambda held: tree_util.tree_map(lambda v: 2 * v + 1, held))(Plain())
    equal(doubled.weight, [3, 3])
    equal(doubled.inner["bias"], [1])
    assert doubled.name == "layer" and doubled.activation is jnp.tanh
    paths = [tree_util.keystr(path) for path, _ in tree_util.tree_leaves_with_path(Plain())]
    assert paths == [".inner['bias']", ".weight"]

    @tree_util.register_custom_pytree
    @dataclasses.dataclass
    class Fields:
        weight: jax.Array
        size: int = dataclasses.field(default=3, metadata={"static": True})

    assert tree_util.tree_leaves(Fields(1.0)) == [1.0] and tree_util.tree_map(lambda v: 2 * v, Fields(1.0)) == Fields(2.0)

    class Slots:
        __slots__ = ("weight",)

    with pytest.raises(TypeError, match="Slots keeps its attributes in slots"):
        tree_util.register_custom_pytree(Slots)
    with pytest.raises(TypeError, match="expected a class"):
        tree_util.register_custom_pytree(3)


# --- block 7: random -------------------------------------------------------------------------------------------------


def test_random():
    from capibara.jax import random

    key = random.PRNGKey(0)
    x = random.normal(key, shape=(10,))
    equal(x[:3], [1.6226422, 2.0252647, -0.43359444], 1e-4)

    x = random.truncated_normal(key, shape=(10,), bounds=(-2, 2))
    equal(x, random.truncated_normal(key, -2.0, 2.0, (10,)))
    assert bool((abs(x) < 2).all())


# --- blocks 11 and 24: devices ---------------------------------------------------------------------------------------


def test_devices():
    import capibara.jax as jax
    import capibara.jax.numpy as jnp  # noqa: F401

    print(f"Devices: {jax.devices()}")
    assert len(jax.devices()) >= 1
    assert jax.devices()[0].id == 0
    assert "CpuDevice(id=0)" in str(jax.devices("cpu"))


# --- block 12: jit, grad, vmap ---------------------------------------------------------------------------------------


def test_basic_use():
    import capibara.jax as jax
    import capibara.jax.numpy as jnp

    @jax.jit
    def matrix_multiply(x, y):
        return jnp.dot(x, y)

    @jax.grad
    def loss_fn(params, x, y):
        pred = jnp.dot(x, params)
        return jnp.mean((pred - y) ** 2)

    batched_fn = jax.vmap(matrix_multiply)

    x, y = np.arange(6.0, dtype=np.float32).reshape(2, 3), np.ones((3, 2), np.float32)
    equal(matrix_multiply(x, y), x @ y)
    params, target = np.array([1.0, 0.0, -1.0], np.float32), np.array([1.0, 2.0], np.float32)
    equal(loss_fn(params, x, target), x.T @ (x @ params - target))
    equal(batched_fn(np.stack([x, 2 * x]), np.stack([y, y])), np.stack([x @ y, 2 * x @ y]))


# --- block 13: jit with a backend and donation; the optimizations before it come later -------------------------------


def test_jit_with_backend_and_donation():
    @jax.jit
    def optimized_function(x):
        return jnp.dot(x, x.T)

    compiled = jax.jit(
        optimized_function,
        backend="cpu",
        donate_argnums=(0,)
    )
    x = jnp.ones((2, 2))
    equal(compiled(x), np.full((2, 2), 2.0))
    assert x.is_deleted()
    equal(jax.jit(optimized_function, device=jax.devices()[0])(jnp.ones((2, 2))), np.full((2, 2), 2.0))
    with pytest.raises(RuntimeError, match="no_such_backend"):
        jax.jit(optimized_function, backend="no_such_backend")(jnp.ones((2, 2)))


# --- blocks 14 and 15: a program for jax, and the same for capibara --------------------------------------------------

EXISTING = """
import jax
import jax.numpy as jnp

@jax.jit
def my_function(x):
    return jnp.sum(x ** 2)

import sys
print(float(my_function(jnp.arange(4.0))), jax.__version__, "jaxlib" in sys.modules)
"""


def python(*arguments):
    done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": MODULES, "JAX_PLATFORMS": "cpu"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_existing_code_runs_unmodified(tmp_path):
    script = tmp_path / "existing.py"
    script.write_text(EXISTING)
    assert python("-m", "capibara", script).split() == ["14.0", "0.10.2", "False"]


def test_migration_by_replacing_the_imports():
    import capibara.jax as jax
    import capibara.jax.numpy as jnp

    @jax.jit
    def my_function(x):
        return jnp.sum(x ** 2)

    equal(my_function(jnp.arange(4.0)), 14.0)


def test_mixing_with_the_real_jax():
    # In a separate process: this one must not load the real jax.
    text = python("-c", """
import jax as standard_jax
import capibara.jax as custom_jax

x = standard_jax.numpy.ones((10, 10))
y = custom_jax.tpu_v4.adaptive_kernels.matmul(x, x)
print(type(y).__module__.split(".")[0], float(y[0, 0]))
back = standard_jax.numpy.asarray(y)
print(isinstance(back, standard_jax.Array), float(back.sum()))
print(float(custom_jax.numpy.from_dlpack(x).sum()))
""")
    assert text.split() == ["capibara", "10.0", "True", "1000.0", "100.0"]


# --- block 16: compatibility -----------------------------------------------------------------------------------------


def test_compatibility():
    from capibara.jax import check_compatibility

    is_compatible = check_compatibility(version="0.4.20")
    print(f"Compatible: {is_compatible}")
    assert is_compatible["version"] == "0.4.20" and not is_compatible and not is_compatible["compatible"]
    missing = set(is_compatible["missing"])  # names that 0.4.20 had and later releases removed
    assert {"jax.tree_map", "jax.xla_computation", "numpy.in1d", "numpy.trapz", "numpy.row_stack"} <= missing
    assert "jax.ffi" not in missing and str(is_compatible).startswith(f"False ({len(missing)} of ")
    for name in is_compatible["missing"]:
        reached = jax
        for part in name.removeprefix("jax.").split("."):
            reached = getattr(reached, part, None)
        assert reached is None, f"{name} exists"
    for unknown in ("9.9.9", "0.4.19", "0.4.39", "latest", 3):
        with pytest.raises(ValueError, match="from 0.4.20 to 0.10.2"):
            check_compatibility(version=unknown)


# --- block 17: primitives --------------------------------------------------------------------------------------------


def test_custom_primitive():
    from capibara.jax.core import Primitive

    my_prim = Primitive("my_custom_op")

    @my_prim.def_impl
    def my_impl(x):
        return x * 2

    @my_prim.def_abstract_eval
    def my_abstract_eval(x):
        return x

    inputs = jnp.arange(3.0)
    result = my_prim.bind(inputs)
    equal(result, [0, 2, 4])
    assert "my_custom_op" in str(jax.make_jaxpr(my_prim.bind)(inputs))
    equal(jax.jit(my_prim.bind)(inputs), [0, 2, 4])

    # The error names a missing rule.
    with pytest.raises(NotImplementedError, match="my_custom_op"):
        jax.grad(lambda x: my_prim.bind(x))(1.0)
    with pytest.raises(NotImplementedError, match="my_custom_op"):
        jax.vmap(my_prim.bind)(inputs)
    my_prim.def_jvp(lambda primals, tangents: (my_prim.bind(*primals), 2 * tangents[0]))
    my_prim.def_batch(lambda arguments, dims: (my_prim.bind(*arguments), dims[0]))
    equal(jax.grad(lambda x: my_prim.bind(x))(1.0), 2.0)
    equal(jax.vmap(my_prim.bind)(inputs), [0, 2, 4])


# --- block 18: jit that can be debugged ------------------------------------------------------------------------------


def test_debug_jit(capsys):
    from capibara.jax import jit

    @jit(debug=True, inline=False)
    def debug_function(x):
        print(f"Input shape: {x.shape}")
        print(f"Input: {x}")
        return x * 2

    equal(debug_function(jnp.arange(3.0)), [0, 2, 4])
    printed = capsys.readouterr().out
    assert "Input shape: (3,)" in printed
    assert "Input: [0. 1. 2.]" in printed  # the values, not a tracer


def test_jit_with_static_arguments():
    from capibara.jax import jit

    @jit(static_argnums=(1,))
    def static_function(x, mode):
        if mode == "train":
            return x * 2
        else:
            return x

    equal(static_function(jnp.arange(3.0), "train"), [0, 2, 4])
    equal(static_function(jnp.arange(3.0), "test"), [0, 1, 2])


# --- block 21: debug mode --------------------------------------------------------------------------------------------


def test_debug_mode(flags):
    from capibara.jax import config

    config.update("jax_debug_mode", True)
    config.update("jax_debug_nans", True)
    config.update("jax_debug_infs", True)
    config.update("jax_log_compiles", True)
    config.update("jax_disable_jit", True)
    assert all(getattr(config, name) is True for name in flags)

    seen = []

    @jax.jit
    def branch(x):
        seen.append(float(x))  # concrete, since jit is disabled
        return x if x > 0 else -x

    equal(branch(jnp.float32(-2.0)), 2.0)
    assert seen == [-2.0]
    with pytest.raises(FloatingPointError, match="nan"):
        jnp.log(jnp.float32(-1.0))
    with pytest.raises(FloatingPointError, match="inf"):
        jnp.float32(1.0) / jnp.float32(0.0)


# --- block 22: errors ------------------------------------------------------------------------------------------------


def risky_operation(inputs):
    return jnp.ones((2, 3)) @ inputs


def test_error_handling():
    from capibara.jax import errors

    inputs = jnp.ones((2, 3))
    try:
        result = risky_operation(inputs)
    except errors.JAXError as e:
        result = None
        print(f"JAX error: {e}")
        print(f"Traceback: {e.get_traceback()}")
        assert "risky_operation" in e.get_traceback()  # the user's frames
        assert os.path.dirname(jax.__file__) not in e.get_traceback()  # and none of the library's
        assert isinstance(e, TypeError)
    assert result is None


@pytest.mark.parametrize("make", [
    lambda: jax.jit(lambda x: bool(x))(1.0),
    lambda: jax.jit(lambda x: np.asarray(x))(1.0),
    lambda: jnp.zeros(3).reshape(2),
    lambda: jnp.arange(3)[1.5],
    lambda: jax.lax.psum(1.0, "nowhere"),
])
def test_every_error_of_the_library_is_a_jax_error(make):
    with pytest.raises(jax.errors.JAXError):
        make()
