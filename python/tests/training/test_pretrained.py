"""Weights from safetensors files: we read files of the reference package, and generate the text that a plain jax program generates."""

import json
import struct

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
oracle = pytest.importorskip("jax", reason="the peer is not installed")
peer = pytest.importorskip("safetensors.numpy", reason="the reference package is not installed")

import capibara.jax.numpy as jnp
import plain_language_model as plain
from capibara import safetensors, training

GPT2 = {"model_type": "gpt2", "vocab_size": 96, "n_embd": 32, "n_head": 4, "n_layer": 2, "n_positions": 64, "layer_norm_epsilon": 1e-5}
LLAMA = {"model_type": "llama", "vocab_size": 96, "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2,
         "intermediate_size": 40, "num_hidden_layers": 2, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": False}


def normal(random, *shape):
    return (random.standard_normal(shape) * (0.5 if len(shape) > 1 else 0.1)).astype("float32")


def gpt2_file(folder):
    """Tensors with the names and layouts of the published file: weights are [inputs, outputs]."""
    random, width = np.random.default_rng(0), 32
    tensors = {"transformer.wte.weight": normal(random, 96, width), "transformer.wpe.weight": normal(random, 64, width)}
    norms = ["transformer.ln_f"] + [f"transformer.h.{i}.ln_{j}" for i in range(2) for j in (1, 2)]
    for name in norms:
        tensors[name + ".weight"], tensors[name + ".bias"] = 1 + normal(random, width), normal(random, width)
    for i in range(2):
        for name, inputs, outputs in (("attn.c_attn", width, 3 * width), ("attn.c_proj", width, width),
                                      ("mlp.c_fc", width, 4 * width), ("mlp.c_proj", 4 * width, width)):
            tensors[f"transformer.h.{i}.{name}.weight"] = normal(random, inputs, outputs)
            tensors[f"transformer.h.{i}.{name}.bias"] = normal(random, outputs)
    write(folder, GPT2, tensors)
    return tensors


def llama_file(folder, dtype="float32"):
    """Tensors of a Llama: weights are [outputs, inputs], and there are fewer key heads."""
    random, width, hidden = np.random.default_rng(1), 32, 40
    tensors = {"model.embed_tokens.weight": normal(random, 96, width), "model.norm.weight": 1 + normal(random, width),
               "lm_head.weight": normal(random, 96, width)}
    for i in range(2):
        layer = f"model.layers.{i}."
        tensors[layer + "input_layernorm.weight"] = 1 + normal(random, width)
        tensors[layer + "post_attention_layernorm.weight"] = 1 + normal(random, width)
        for name, outputs, inputs in (("self_attn.q_proj", width, width), ("self_attn.k_proj", 16, width), ("self_attn.v_proj", 16, width),
                                      ("self_attn.o_proj", width, width), ("mlp.gate_proj", hidden, width), ("mlp.up_proj", hidden, width),
                                      ("mlp.down_proj", width, hidden)):
            tensors[layer + name + ".weight"] = normal(random, outputs, inputs)
    write(folder, LLAMA, {name: value.astype(dtype) for name, value in tensors.items()})
    return tensors


def write(folder, config, tensors):
    (folder / "config.json").write_text(json.dumps(config))
    peer.save_file(tensors, str(folder / "model.safetensors"))


def plain_gpt2(tensors, tokens):
    """Uses only the published names; attention is taken from the plain model next to this file."""
    t = {name.removeprefix("transformer."): value for name, value in tensors.items()}
    x = t["wte.weight"][tokens] + t["wpe.weight"][:tokens.shape[1]]
    for i in range(2):
        p = {"qkv.weight": t[f"h.{i}.attn.c_attn.weight"], "qkv.bias": t[f"h.{i}.attn.c_attn.bias"],
             "out.weight": t[f"h.{i}.attn.c_proj.weight"], "out.bias": t[f"h.{i}.attn.c_proj.bias"]}
        normed = plain.layer_norm(x, t[f"h.{i}.ln_1.weight"], t[f"h.{i}.ln_1.bias"], 1e-5)
        x = x + plain.attention(p, "", normed, 4, 4, None)
        normed = plain.layer_norm(x, t[f"h.{i}.ln_2.weight"], t[f"h.{i}.ln_2.bias"], 1e-5)
        hidden = oracle.nn.gelu(normed @ t[f"h.{i}.mlp.c_fc.weight"] + t[f"h.{i}.mlp.c_fc.bias"], approximate=True)
        x = x + hidden @ t[f"h.{i}.mlp.c_proj.weight"] + t[f"h.{i}.mlp.c_proj.bias"]
    return plain.layer_norm(x, t["ln_f.weight"], t["ln_f.bias"], 1e-5) @ t["wte.weight"].T


def plain_llama(t, tokens):
    x = t["model.embed_tokens.weight"][tokens]
    for i in range(2):
        layer = f"model.layers.{i}."
        qkv = oracle.numpy.concatenate([t[f"{layer}self_attn.{name}_proj.weight"] for name in "qkv"]).T
        p = {"qkv.weight": qkv, "out.weight": t[layer + "self_attn.o_proj.weight"].T}
        x = x + plain.attention(p, "", plain.rms_norm(x, t[layer + "input_layernorm.weight"], 1e-6), 4, 2, 10000.0)
        normed = plain.rms_norm(x, t[layer + "post_attention_layernorm.weight"], 1e-6)
        hidden = oracle.nn.silu(normed @ t[layer + "mlp.gate_proj.weight"].T) * (normed @ t[layer + "mlp.up_proj.weight"].T)
        x = x + hidden @ t[layer + "mlp.down_proj.weight"].T
    return plain.rms_norm(x, t["model.norm.weight"], 1e-6) @ t["lm_head.weight"].T


def greedy(forward, tensors, prompt, count):
    """Without a cache: recomputes the whole text for each token, padded to one length so that jax compiles once."""
    run = oracle.jit(lambda tokens: forward({name: oracle.numpy.asarray(value) for name, value in tensors.items()}, tokens))
    text = list(prompt)
    for _ in range(count):
        padded = np.zeros((1, len(prompt) + count), np.int32)
        padded[0, :len(text)] = text
        text.append(int(np.argmax(run(padded)[0, len(text) - 1])))
    return text[len(prompt):]


@pytest.mark.parametrize("make, forward", [(gpt2_file, plain_gpt2), (llama_file, plain_llama)], ids=["gpt2", "llama"])
def test_published_shapes_generate_the_tokens_of_plain_jax(make, forward, tmp_path):
    tensors = make(tmp_path)
    model, params = training.load_pretrained(str(tmp_path))
    tokens = np.random.default_rng(2).integers(0, 96, (2, 23), dtype=np.int32)
    np.testing.assert_allclose(model.apply(params, jnp.asarray(tokens)), forward(tensors, tokens), rtol=2e-4, atol=2e-4)
    generator = training.Generator(model, params, 64)
    for prompt in ([5], list(range(3, 24))):
        assert generator.generate(prompt, max_new_tokens=30) == greedy(forward, tensors, prompt, 30)


def test_bfloat16_files_are_read(tmp_path):
    tensors = llama_file(tmp_path, ml_dtypes.bfloat16)
    _, params = training.load_pretrained(str(tmp_path))
    rounded = tensors["model.embed_tokens.weight"].astype(ml_dtypes.bfloat16).astype("float32")
    np.testing.assert_array_equal(params["embedding"], rounded)


def test_drawn_tokens_follow_the_distribution(tmp_path):
    gpt2_file(tmp_path)
    model, params = training.load_pretrained(str(tmp_path))
    generator = training.Generator(model, params, 4)
    probabilities = np.asarray(oracle.nn.softmax(np.asarray(model.apply(params, jnp.array([[7]], "int32")))[0, 0] / 2.0))
    drawn = [generator.generate([7], max_new_tokens=1, temperature=2.0, seed=seed)[0] for seed in range(400)]
    likely = np.argsort(probabilities)[-3:]
    share = np.isin(drawn, likely).mean()
    assert abs(share - probabilities[likely].sum()) < 0.1
    top = {generator.generate([7], max_new_tokens=1, temperature=5.0, top_k=2, seed=seed)[0] for seed in range(40)}
    assert top == set(np.argsort(probabilities)[-2:].tolist())


def test_files_go_both_ways_with_the_reference_package(tmp_path):
    random = np.random.default_rng(3)
    arrays = {"a": normal(random, 3, 4), "b.c": random.integers(-5, 5, (2,)).astype("int32"), "empty": np.zeros((0, 3), "float16"),
              "scalar": np.array(2.5, "float32"), "flag": np.array([True, False]), "half": normal(random, 5).astype(ml_dtypes.bfloat16)}
    peer.save_file(arrays, str(tmp_path / "theirs.safetensors"), {"made": "here"})
    theirs = safetensors.load_file(tmp_path / "theirs.safetensors")
    assert safetensors.load_metadata(tmp_path / "theirs.safetensors") == {"made": "here"}
    safetensors.save_file(theirs, tmp_path / "ours.safetensors", {"made": "there"})
    ours = peer.load_file(str(tmp_path / "ours.safetensors"))
    for name, want in arrays.items():
        for got in (theirs[name], ours[name]):
            assert str(got.dtype) == str(want.dtype) and got.shape == want.shape
            np.testing.assert_array_equal(np.asarray(got), want)


def hostile(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


HOSTILE = {
    "empty": (b"", "has 0 bytes"),
    "short": (b"\x01\x02", "has 2 bytes"),
    "long header": (hostile({}, length=2**63), "the header would have 9223372036854775808 bytes"),
    "no json": (hostile(b"{\"a\": "), "header"),
    "list": (hostile([]), "not a JSON object"),
    "no dtype": (hostile({"a": {"shape": [1], "data_offsets": [0, 4]}}, bytes(4)), "tensor 'a': the dtype is missing"),
    "dtype": (hostile({"a": {"dtype": "F99", "shape": [1], "data_offsets": [0, 4]}}, bytes(4)), "'F99' is not known"),
    "negative size": (hostile({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}, bytes(4)), "do not fit"),
    "huge shape": (hostile({"a": {"dtype": "F32", "shape": [2**62, 2**62], "data_offsets": [0, 0]}}), "do not fit"),
    "huge empty shape": (hostile({"a": {"dtype": "F32", "shape": [0, 2**62, 2**62], "data_offsets": [0, 0]}}), "do not fit"),
    "text shape": (hostile({"a": {"dtype": "F32", "shape": "x", "data_offsets": [0, 4]}}, bytes(4)), "shape is not a list"),
    "beyond": (hostile({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, bytes(4)), r"\[0, 8\] leave the file"),
    "backwards": (hostile({"a": {"dtype": "F32", "shape": [0], "data_offsets": [4, 0]}}, bytes(4)), "leave the file"),
    "overlap": (hostile({name: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]} for name in "ab"}, bytes(4)),
                "overlap or leave a hole"),
    "hole": (hostile({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}, bytes(8)), "overlap or leave a hole"),
    "rest": (hostile({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, bytes(9)), "end at byte 4 of 9"),
    "metadata": (hostile({"__metadata__": {"a": 1}}), "is not a string"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_with_a_reason(name, tmp_path):
    content, message = HOSTILE[name]
    path = tmp_path / "hostile.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        safetensors.load_file(path)


def test_a_header_beyond_the_limit_is_refused_for_that(tmp_path):
    path = tmp_path / "long.safetensors"
    with open(path, "wb") as file:  # the file has the full length, as a sparse file
        file.write(struct.pack("<Q", 2**30))
        file.truncate(2**30 + 8)
    with pytest.raises(ValueError, match="the header has 1073741824 bytes, the limit is 100000000"):
        safetensors.load_file(path)


def test_wrong_configs_name_the_field(tmp_path):
    tensors = llama_file(tmp_path)
    write(tmp_path, {**LLAMA, "model_type": "bert"}, tensors)
    with pytest.raises(ValueError, match="model_type is 'gpt2' or 'llama', got 'bert'"):
        training.load_pretrained(str(tmp_path))
    write(tmp_path, {**LLAMA, "intermediate_size": 41}, tensors)
    with pytest.raises(ValueError, match=r"'layers.0.mlp.down.weight' must be float32\[41,32\] by config.json, got float32\[40,32\]"):
        training.load_pretrained(str(tmp_path))
    for layers in (-1, 10**12):
        write(tmp_path, {**LLAMA, "num_hidden_layers": layers}, tensors)
        with pytest.raises(ValueError, match=f"'num_hidden_layers' is {layers}, but the file has 21 tensors"):
            training.load_pretrained(str(tmp_path))
    del tensors["model.norm.weight"]
    write(tmp_path, LLAMA, tensors)
    with pytest.raises(ValueError, match="there is no tensor 'model.norm.weight'"):
        training.load_pretrained(str(tmp_path))
