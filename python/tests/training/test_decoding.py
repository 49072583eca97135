"""Generation with weights of fewer bits: the tokens of plain jax on what the bytes stand for; matmuls of floats and bytes."""

import json

import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
oracle = pytest.importorskip("jax", reason="the peer is not installed")

import capibara.jax as jax
import capibara.jax.numpy as jnp
import plain_language_model as plain
from capibara import training

SHAPE = {"vocabulary": 64, "width": 32, "layers": ["attention+mlp", "mamba+mlp", "attention+moe"], "heads": 4, "key_heads": 2, "hidden": 48,
         "experts": 4, "state": 8}


def dequantized(stored):
    """Floats for bytes and their scales, by numpy."""
    values = {name: np.asarray(value) for name, value in stored.items()}
    scales = {name for name in values if name.endswith(".scale") and name[:-6] in values}
    result = {}
    for name in values.keys() - scales:
        value = values[name].astype(np.float32)
        if name + ".scale" in scales:
            scale = values[name + ".scale"]
            value = value * (scale[:, None] if name == "embedding" else scale[:, None, :] if value.ndim == 3 else scale)
        result[name] = oracle.numpy.asarray(value)
    return result


@pytest.mark.parametrize("prompt", [[7], [3, 1, 4, 1, 5, 9, 2, 6, 5]])
def test_bytes_generate_the_tokens_of_plain_jax(prompt):
    model = training.LanguageModel(**SHAPE)
    stored = training.convert_weights(model.init(jax.random.key(2)), "int8")
    assert str(stored["layers.2.moe.up"].dtype) == "int8" and str(stored["norm.scale"].dtype) == "float32"
    found = training.Generator(model, stored, 40).generate(prompt, 12)
    params, config, tokens = dequantized(stored), json.loads(model.to_json()), list(prompt)
    apply = oracle.jit(lambda tokens: plain.apply(params, tokens, config)[0])
    for _ in range(12):
        tokens.append(int(apply(np.asarray([tokens + [0] * (24 - len(tokens))], np.int32))[0, len(tokens) - 1].argmax()))
    assert found == tokens[len(prompt):]


def test_bytes_lose_little():
    model = training.LanguageModel(**{**SHAPE, "layers": ["attention+mlp", "mamba+mlp"]})  # which expert is chosen may flip
    params = model.init(jax.random.key(3))
    tokens = np.random.default_rng(0).integers(0, 64, (2, 16), dtype=np.int32)
    whole, narrow = (np.asarray(model.apply(p, tokens)) for p in (params, training.convert_weights(params, "int8")))
    assert np.abs(whole - narrow).max() < 0.05 * np.abs(whole).max()


def test_other_weights_are_refused_by_name():
    params = training.LanguageModel(**SHAPE).init(jax.random.key(0))
    with pytest.raises(ValueError, match="float32, bfloat16 or int8, got 'int4'"):
        training.convert_weights(params, "int4")
    with pytest.raises(ValueError, match="embedding"):
        training.convert_weights(training.convert_weights(params, "int8"), "int8")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("rows", [1, 7])
@pytest.mark.parametrize("transposed", [False, True])
def test_floats_times_bytes(dtype, rows, transposed):
    random = np.random.default_rng(rows)
    for inner, columns in ((7, 1), (64, 300), (515, 130), (40, 5000)):
        x = jnp.asarray(random.standard_normal((rows, inner)), dtype)
        w = random.integers(-127, 128, (columns, inner) if transposed else (inner, columns)).astype(np.int8)
        numbers = (((1,), (1 if transposed else 0,)), ((), ()))

        def product(x, w):
            return jax.lax.dot_general(x, w, numbers, preferred_element_type=jnp.float32)

        wide = np.asarray(x, np.float64)
        want = wide @ (w.T if transposed else w).astype(np.float64)
        scale = np.abs(wide).max() * 127 * inner**0.5
        for function in (product, jax.jit(product)):
            np.testing.assert_allclose(np.asarray(function(x, jnp.asarray(w))), want, rtol=1e-5, atol=1e-6 * scale)
