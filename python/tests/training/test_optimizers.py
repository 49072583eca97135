"""capibara.optimizers: the updates of ten steps equal those of optax."""

import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
oracle = pytest.importorskip("jax", reason="the peer is not installed")
optax = pytest.importorskip("optax", reason="the peer of optimizers is not installed")

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import optimizers

# A learning rate that must be a schedule of the same library.
COSINE = ("warmup_cosine_decay_schedule", (0.0, 1e-2, 3, 8), {"end_value": 1e-4})
CASES = {
    "sgd": ("sgd", (0.1,), {}),
    "momentum": ("sgd", (0.1,), {"momentum": 0.9}),
    "nesterov": ("sgd", (0.1,), {"momentum": 0.9, "nesterov": True}),
    "adam": ("adam", (1e-2,), {"b1": 0.8}),
    "nadam": ("adam", (1e-2,), {"nesterov": True}),
    "adam eps_root": ("adam", (1e-2,), {"eps_root": 1e-3}),
    "adamw": ("adamw", (1e-2,), {"weight_decay": 0.1}),
    "adamw cosine": ("adamw", (COSINE,), {}),
    "lion": ("lion", (1e-3,), {"weight_decay": 0.1}),
    "lion cosine": ("lion", (COSINE,), {}),
    "adafactor": ("adafactor", (1e-2,), {"min_dim_size_to_factor": 4}),
    "adafactor not factored": ("adafactor", (1e-2,), {"factored": False, "clipping_threshold": None}),
    "adafactor momentum": ("adafactor", (1e-2,), {"momentum": 0.9, "min_dim_size_to_factor": 4, "weight_decay_rate": 1e-3}),
    "muon": ("muon", (1e-2,), {}),
    "muon decay": ("muon", (COSINE,), {"weight_decay": 0.1, "nesterov": False, "adam_weight_decay": 0.01}),
    "clip": ("clip", (0.3,), {}),
    "clip_by_global_norm": ("clip_by_global_norm", (0.5,), {}),
    "add_decayed_weights": ("add_decayed_weights", (0.1,), {}),
}
SCHEDULES = {
    "constant": ("constant_schedule", (0.3,), {}),
    "linear": ("linear_schedule", (1.0, 0.1, 10), {"transition_begin": 3}),
    "polynomial": ("polynomial_schedule", (1.0, 0.1), {"power": 2, "transition_steps": 10}),
    "cosine": ("cosine_decay_schedule", (1.0, 10), {"alpha": 0.1, "exponent": 1.5}),
    "warmup": COSINE,
    "exponential": ("exponential_decay", (1.0, 5, 0.7), {}),
}


def parameters():
    random = np.random.default_rng(0)
    shapes = {"w": (6, 5), "tall": (9, 4), "b": (5,), "experts": (3, 4, 6), "s": ()}
    return {name: random.standard_normal(shape).astype("float32") for name, shape in shapes.items()}


def made(library, name, arguments, options):
    arguments = [made(library, *one) if isinstance(one, tuple) else one for one in arguments]
    home = optax.contrib if library is optax and name == "muon" else library
    return getattr(home, name)(*arguments, **options)


def run(library, tree, case, steps=10):
    """Takes steps on gradients that depend on the parameters, one of them large."""
    optimizer = made(library, *case)
    params = tree
    state = optimizer.init(params)
    for step in range(steps):
        grads = {name: p * 0.3 + (3.0 if step == 4 else 0.1) * (step % 3 - 1) for name, p in params.items()}
        updates, state = optimizer.update(grads, state, params)
        params = library.apply_updates(params, updates)
    return params


@pytest.mark.wide
@pytest.mark.parametrize("name", CASES)
def test_ten_steps_are_those_of_optax(name):
    want = run(optax, {key: oracle.numpy.asarray(value) for key, value in parameters().items()}, CASES[name])
    got = run(optimizers, {key: jnp.asarray(value) for key, value in parameters().items()}, CASES[name])
    tolerance = 2e-4 if "muon" in name else 2e-6  # five matmul iterations amplify rounding
    for key in want:
        assert got[key].dtype == want[key].dtype and got[key].shape == want[key].shape
        np.testing.assert_allclose(got[key], want[key], rtol=tolerance, atol=tolerance, err_msg=key)


def test_chains_equal_those_of_optax_under_jit():
    def both(library, numpy, jit):
        chain = library.chain(library.clip_by_global_norm(1.0), library.adamw(1e-2, weight_decay=0.1))
        params = {key: numpy.asarray(value) for key, value in parameters().items()}
        state = chain.init(params)

        @jit
        def step(params, state):
            updates, state = chain.update({name: p * p for name, p in params.items()}, state, params)
            return library.apply_updates(params, updates), state

        for _ in range(5):
            params, state = step(params, state)
        return params

    want, got = both(optax, oracle.numpy, oracle.jit), both(optimizers, jnp, jax.jit)
    for key in want:
        np.testing.assert_allclose(got[key], want[key], rtol=2e-6, atol=2e-6, err_msg=key)


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_are_those_of_optax(name):
    want, got = made(optax, *SCHEDULES[name]), made(optimizers, *SCHEDULES[name])
    for count in (0, 1, 2, 3, 4, 7, 8, 9, 12, 30):
        np.testing.assert_allclose(float(got(count)), float(want(oracle.numpy.int32(count))), rtol=1e-6, atol=1e-8, err_msg=str(count))


def test_joined_schedules_count_from_their_boundary():
    def joined(library):
        return library.join_schedules([library.linear_schedule(0.0, 1.0, 5), library.constant_schedule(0.5)], [5])

    for count in range(8):
        np.testing.assert_allclose(float(joined(optimizers)(count)), float(joined(optax)(oracle.numpy.int32(count))), rtol=1e-6)


def test_bfloat16_parameters_stay_bfloat16():
    params = {"w": jnp.ones((4, 4), "bfloat16")}
    optimizer = optimizers.adam(1e-2)
    updates, _ = optimizer.update({"w": jnp.ones((4, 4), "bfloat16")}, optimizer.init(params), params)
    assert optimizers.apply_updates(params, updates)["w"].dtype == "bfloat16"


def test_errors_name_the_argument():
    optimizer = optimizers.sgd(0.1)
    params = {"w": jnp.ones((2, 3))}
    with pytest.raises(ValueError, match=r"gradient of parameter 0 has type float32\[3,2\], expected the shape of float32\[2,3\]"):
        optimizer.update({"w": jnp.ones((3, 2))}, optimizer.init(params), params)
    with pytest.raises(ValueError, match="decay_steps must be positive, got 0"):
        optimizers.cosine_decay_schedule(1.0, 0)
    with pytest.raises(ValueError, match="decay_steps counts the warm-up too"):
        optimizers.warmup_cosine_decay_schedule(0.0, 1.0, 10, 10)
    with pytest.raises(TypeError, match="learning_rate is a number or a function"):
        optimizers.adam("fast")
    with pytest.raises(AttributeError, match="adam"):
        optimizers.adamm
