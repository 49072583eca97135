"""Generation with quantized weights: the tokens of plain jax on the decoded weights; matmuls of floats and bytes; files."""

import json

import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
oracle = pytest.importorskip("jax", reason="the peer is not installed")

import capibara.jax as jax
import capibara.jax.numpy as jnp
import plain_language_model as plain
from capibara import training
from capibara.model import as_model

SHAPE = {"vocabulary": 64, "width": 32, "layers": ["attention+mlp", "mamba+mlp", "attention+moe"], "heads": 4, "key_heads": 2, "hidden": 48,
         "experts": 4, "state": 8}


def widened(codes, scale, inputs, codebook=None):
    """Decodes [..., outputs, bytes] to [..., inputs, outputs] in numpy."""
    if codebook is not None:  # codes [..., outputs, vectors, stages], codebook [..., stages, 1, entries, dim]
        if codes.ndim == 4:
            return np.stack([widened(*each[:2], inputs, each[2]) for each in zip(codes, scale, codebook)])
        vectors = sum(codebook[stage, 0][codes[..., stage]] for stage in range(codes.shape[-1]))
        return (vectors.reshape(len(codes), inputs) * scale).T
    if codes.dtype == np.int8:
        values, block = codes.astype(np.float32), inputs // scale.shape[-1]
    else:  # byte i of 16 has element i in its low half and i + 16 in its high half
        parts, block = codes.reshape(*codes.shape[:-1], -1, 16), 32
        values = np.concatenate([parts & 15, parts >> 4], -1).reshape(*codes.shape[:-1], -1).astype(np.float32) - 8
    return np.swapaxes((values * np.repeat(scale.astype(np.float32), block, -1))[..., :inputs], -1, -2)


def dequantized(stored, shapes):
    """Dequantizes codes and their scales in numpy."""
    values = {name: np.asarray(value) for name, value in stored.items()}
    result = {}
    for name, shape in shapes.items():
        if name + ".codes" not in values:
            result[name] = oracle.numpy.asarray(values[name])
            continue
        table = name == "embedding"
        whole = widened(values[name + ".codes"], values[name + ".scale"], shape[-1 if table else -2], values.get(name + ".codebook"))
        result[name] = oracle.numpy.asarray(whole.T if table else whole)
        assert result[name].shape == tuple(shape)
    return result


@pytest.mark.parametrize("weights", ["int8", "int4", "vq"])
@pytest.mark.parametrize("prompt", [[7], [3, 1, 4, 1, 5, 9, 2, 6, 5]])
def test_codes_generate_the_tokens_of_plain_jax(prompt, weights):
    # Codebooks of 256 vectors of four need larger matrices.
    model = training.LanguageModel(**SHAPE if weights != "vq" else {**SHAPE, "vocabulary": 96, "width": 64, "hidden": 128})
    stored = training.convert_weights(model.init(jax.random.key(2)), weights)
    assert str(stored["layers.2.moe.up.codes"].dtype) == {"int8": "int8", "int4": "uint8", "vq": "uint8"}[weights]
    assert ("layers.2.moe.up.codebook" in stored) == ("embedding.codebook" in stored) == (weights == "vq")
    assert str(stored["norm.scale"].dtype) == "float32" and "layers.2.moe.up" not in stored
    found = training.Generator(model, stored, 40).generate(prompt, 12)
    params, config, tokens = dequantized(stored, model.shapes()), json.loads(model.to_json()), list(prompt)
    apply = oracle.jit(lambda tokens: plain.apply(params, tokens, config)[0])
    for _ in range(12):
        tokens.append(int(apply(np.asarray([tokens + [0] * (24 - len(tokens))], np.int32))[0, len(tokens) - 1].argmax()))
    assert found == tokens[len(prompt):]


def rounded(name, value, weights):
    """A matrix rounded in numpy: to steps of 1/127 of an output's maximum, or of 1/8 of the maximum of 32 inputs, from -8 to 7 steps."""
    if value.ndim != 2 or not name.endswith((".weight", "embedding")):
        return value
    rows = np.asarray(value if name == "embedding" else value.T, np.float64)
    blocks = rows.reshape(len(rows), -1, rows.shape[1] if weights == "int8" else 32)
    extreme = np.take_along_axis(blocks, np.abs(blocks).argmax(-1)[..., None], -1)
    step, limits = (extreme / 127, (-127, 127)) if weights == "int8" else (extreme / -8, (-8, 7))
    rows = (np.clip(np.round(blocks / step), *limits) * step).reshape(rows.shape)
    return (rows if name == "embedding" else rows.T).astype(np.float32)


@pytest.mark.parametrize("weights, most", [("int8", 1.05), ("int4", 1.3)])  # int4 uses a different scale
def test_codes_lose_no_more_than_plain_rounding(weights, most):
    shape = {**SHAPE, "width": 64, "hidden": 96, "layers": ["attention+mlp"] * 2}  # no experts: the choice of one may flip
    model = training.LanguageModel(**shape)
    params = model.init(jax.random.key(3))
    tokens = np.random.default_rng(0).integers(0, 64, (2, 16), dtype=np.int32)
    plainly = {name: jnp.asarray(rounded(name, np.asarray(value), weights)) for name, value in params.items()}
    whole, narrow, plain_loss = (np.asarray(model.apply(p, tokens)) for p in (params, training.convert_weights(params, weights), plainly))
    assert 0 < np.linalg.norm(whole - narrow) < most * np.linalg.norm(whole - plain_loss)


def test_files_of_codes_are_read_back_bit_by_bit(tmp_path):
    numpy_files = pytest.importorskip("safetensors.numpy")
    model = training.LanguageModel(**{**SHAPE, "width": 64, "hidden": 128})
    for weights in ("float32", "bfloat16", "int8", "int4", "vq"):
        stored = training.convert_weights(model.init(jax.random.key(2)), weights)
        path = tmp_path / (weights + ".safetensors")
        training.save_weights(path, stored)
        ours, theirs = training.load_weights(path), numpy_files.load_file(path)
        assert set(ours) == set(stored) == set(theirs)
        for name, value in stored.items():
            for other in (ours[name], theirs[name]):
                assert str(other.dtype) == str(value.dtype) and np.asarray(other).tobytes() == np.asarray(value).tobytes()


def test_files_of_codes_that_do_not_fit_are_refused_by_name(tmp_path):
    numpy_files = pytest.importorskip("safetensors.numpy")
    path, metadata = tmp_path / "codes.safetensors", {"capibara.codes": "1", "w.codes": "int8"}
    codes, scale = np.ones((3, 4), np.int8), np.ones((3, 1), np.float32)

    def refused(tensors, words, metadata=metadata):
        numpy_files.save_file(tensors, path, metadata)
        with pytest.raises(ValueError, match=words):
            training.load_weights(path)
    for wrong in (None, 3, ["codes"]):
        for call in (lambda: training.load_weights(wrong), lambda: training.save_weights(wrong, {"w": scale})):
            with pytest.raises(TypeError, match="argument 'path'"):
                call()
    with pytest.raises(TypeError, match="argument 'params'"):
        training.save_weights(path, {})
    with pytest.raises(ValueError, match="missing.safetensors"):
        training.load_weights(tmp_path / "missing.safetensors")
    numpy_files.save_file({"w.codes": codes, "w.scale": scale}, path, metadata)
    assert set(training.load_weights(path)) == {"w.codes", "w.scale"}
    refused({"w.codes": np.full((3, 4), -128, np.int8), "w.scale": scale}, "'w.codes' has the code -128, expected -127 to 127")
    refused({"w.codes": codes, "w.scale": scale * np.nan}, "'w.scale' is not finite")
    refused({"w.codes": codes, "w.scale": scale[:2]}, "'w.codes' does not fit: .*argument 'scale'")
    refused({"w.codes": codes}, "has no tensor 'w.scale' of its scales")
    refused({"w.codes": codes.astype(np.uint8), "w.scale": scale}, "is int4, the metadata says int8")
    refused({"w.codes": codes, "w.scale": scale}, "has no format in the metadata", {"capibara.codes": "1"})
    refused({"w.codes": codes, "w.scale": scale}, "expected 'capibara.codes' to be 1", {"w.codes": "int8"})
    book = np.ones((1, 1, 5, 2), np.float32)
    refused({"w.codes": np.full((3, 2, 1), 5, np.uint8), "w.scale": scale, "w.codebook": book}, "has the code 5, expected 0 to 4",
            {"capibara.codes": "1", "w.codes": "vectors"})


def test_other_weights_are_refused_by_name():
    params = training.LanguageModel(**SHAPE).init(jax.random.key(0))
    with pytest.raises(ValueError, match="float32, bfloat16, int8, int4 or vq, got 'int5'"):
        training.convert_weights(params, "int5")
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


@pytest.mark.parametrize("format, share, loss", [("int8", 0.27, 0.01), ("int4", 0.16, 0.15), ("vq", 0.4, 0.3)])
def test_any_model_multiplies_by_codes(format, share, loss):
    draws = np.random.default_rng(0)
    params = {"up": draws.normal(size=(64, 128)).astype(np.float32), "bias": np.zeros(128, np.float32),
              "down": draws.normal(size=(128, 64)).astype(np.float32)}
    x = draws.normal(size=(5, 64)).astype(np.float32)

    def apply(p, x):
        return jnp.tanh(0.1 * (x @ p["up"]) + p["bias"]) @ p["down"]
    made = training.quantize_model({"params": params, "apply": apply}, format)
    whole = {name: np.asarray(leaf.array()) if name != "bias" else leaf for name, leaf in made.params.items()}
    bytes_of = sum(leaf.nbytes for leaf in jax.tree.leaves(made.params))
    assert bytes_of < share * sum(leaf.nbytes for leaf in params.values())
    rounded = np.tanh(0.1 * (x @ whole["up"].astype(np.float64))) @ whole["down"]
    np.testing.assert_allclose(made.apply(made.params, x), rounded, rtol=2e-4, atol=2e-4)
    exact = np.tanh(0.1 * (x @ params["up"].astype(np.float64))) @ params["down"]
    assert 0 < np.linalg.norm(rounded - exact) < loss * np.linalg.norm(exact)


def rounded_activations(x, step):
    """x as multiples of its scale, at most 127 of them; without one each row's own maximum has 127."""
    step = np.abs(x).max(-1, keepdims=True) / 127 if step is None else step
    return np.clip(np.rint(x / step), -127, 127) * step


@pytest.mark.parametrize("percentile", [None, 100.0, 99.0])
def test_activations_are_rounded_with_calibrated_scales_or_by_rows(percentile):
    draws = np.random.default_rng(1)
    params = {"up": draws.normal(size=(64, 128)).astype(np.float32), "down": draws.normal(size=(128, 64)).astype(np.float32)}
    batches = [(draws.normal(size=(5, 64)).astype(np.float32),) for _ in range(4)]

    def apply(p, x):
        return jnp.maximum(x @ p["up"], 0) @ p["down"]
    coded = training.quantize_model({"params": params, "apply": apply})
    up, down = (np.asarray(coded.params[name].array(), np.float64) for name in ("up", "down"))
    if percentile is None:
        made = training.quantize_activations(coded)
        steps = None, None
    else:
        made = training.quantize_activations(coded, iter(batches), batches=3, percentile=percentile)
        steps = [float(made.params[name].input_scale[0]) for name in ("up", "down")]
        seen = np.concatenate([batch[0] for batch in batches[:3]])
        for step, values in zip(steps, (seen, np.maximum(seen @ up, 0))):
            want = np.quantile(np.abs(values), percentile / 100, method="inverted_cdf") / 127
            assert want * (1 - 1e-4) <= step <= want * (1 + 1e-4 + (percentile < 100) / 128)
    x = batches[3][0]
    hidden = np.maximum(rounded_activations(x.astype(np.float64), steps[0]) @ up, 0)
    want = rounded_activations(hidden, steps[1]) @ down
    got = np.asarray(made.apply(made.params, x))
    assert np.linalg.norm(got - want) < 2e-3 * np.linalg.norm(want)  # sums near half a step may round to the other side
    lost = np.linalg.norm(got - np.asarray(coded.apply(coded.params, x))) / np.linalg.norm(want)
    assert 1e-3 < lost < (0.02 if percentile != 99.0 else 0.2)
    again = training.quantize_activations(made, batches, batches=1)  # replaces the scales
    assert again.params["up"].input_scale.shape == (1,)
    gradient = jax.grad(lambda x: made.apply(made.params, x).sum())(x)
    assert np.isfinite(np.asarray(gradient)).all() and np.abs(np.asarray(gradient)).max() > 0


def test_language_models_generate_with_int8_activations(tmp_path):
    model = training.LanguageModel(**SHAPE)
    coded = training.convert_weights(model.init(jax.random.key(2)), "int8")
    batches = [np.random.default_rng(i).integers(0, 64, (2, 17)).astype(np.int32) for i in range(3)]
    for loader in (None, batches):
        made = training.quantize_activations(as_model(model, coded), loader, batches=3).params
        assert made["layers.2.moe.up.input_scale"].shape == ((0,) if loader is None else (1,))
        assert len(made) == len(coded) + sum(name.endswith(".codes") for name in coded)
        loss, exact = (float(model.cross_entropy(p, jnp.asarray(batches[0]))) for p in (made, coded))
        assert 0 < abs(loss - exact) < 0.01 * exact
        training.save_weights(tmp_path / "codes.safetensors", made)
        read = training.load_weights(tmp_path / "codes.safetensors")
        assert training.Generator(model, read, 20).generate([1, 2, 3], 8) == training.Generator(model, made, 20).generate([1, 2, 3], 8)
