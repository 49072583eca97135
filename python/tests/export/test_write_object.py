"""Compiled functions written as object files: the C function returns jax's results, and the header names its arguments."""
import ctypes
import re
import subprocess

import jax as peer
import jax.numpy as peer_numpy
import numpy as np
import pytest

import capibara.jax as jax
import capibara.jax.numpy as jnp


def predict(params, x, *, scale):
    return {"y": jnp.tanh(x @ params["w"]) + params["b"], "scaled": x * scale}


def predict_by_jax(params, x, *, scale):
    return {"y": peer_numpy.tanh(x @ params["w"]) + params["b"], "scaled": x * scale}


rng = np.random.default_rng(4)
PARAMS = {"b": rng.normal(size=2).astype(np.float32), "w": rng.normal(size=(3, 2)).astype(np.float32)}
X = rng.normal(size=(4, 3)).astype(np.float32)
SCALE = np.float32(0.5)


def called(folder, name, inputs, results, *weights):
    """The results of the C function, called from a shared library made only of the object."""
    library = folder / f"{name}.so"
    subprocess.run(["cc", "-shared", "-o", str(library), str(folder / f"{name}.o"), "-lm"], check=True)
    header = (folder / f"{name}.h").read_text()
    size = int(re.search(rf"#define {name.upper()}_ARENA_BYTES (\d+)", header)[1])
    raw = ctypes.create_string_buffer(size + 64)
    arena = ctypes.c_void_p((ctypes.addressof(raw) + 63) // 64 * 64)
    inputs = [np.ascontiguousarray(x) for x in inputs]
    outputs = [np.empty(r.shape, r.dtype) for r in results]

    def pointers(arrays):
        return (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))

    getattr(ctypes.CDLL(str(library)), name)(pointers(inputs), pointers(outputs), arena, *weights)
    return outputs


def test_the_c_function_gives_the_results_of_jax(tmp_path):
    compiled = jax.jit(predict).lower(PARAMS, X, scale=SCALE).compile()
    compiled.write_object(tmp_path / "predict.o", tmp_path / "predict.h")
    header = (tmp_path / "predict.h").read_text()
    names = ["PREDICT_IN_ARGS_0_B = 0, /* inputs[0]: args[0]['b'], f32[2], 8 bytes",
             "PREDICT_IN_ARGS_0_W = 1, /* inputs[1]: args[0]['w'], f32[3,2], 24 bytes",
             "PREDICT_IN_ARGS_1 = 2, /* inputs[2]: args[1], f32[4,3], 48 bytes",
             "PREDICT_IN_KWARGS_SCALE = 3, /* inputs[3]: kwargs['scale'], f32[], 4 bytes",
             "PREDICT_OUT_RESULT_SCALED = 0, /* outputs[0]: result['scaled'], f32[4,3], 48 bytes",
             "PREDICT_OUT_RESULT_Y = 1, /* outputs[1]: result['y'], f32[4,2], 32 bytes"]
    for name in names:
        assert name in header
    expected = peer.tree.leaves(peer.jit(predict_by_jax)(PARAMS, X, scale=SCALE))
    for got, want in zip(called(tmp_path, "predict", [PARAMS["b"], PARAMS["w"], X, SCALE], expected), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


def test_unread_arguments_are_left_out(tmp_path):
    jax.jit(lambda x, unread, y: x - 2 * y).lower(X, X, X[0]).compile().write_object(tmp_path / "f.o", tmp_path / "f.h", name="f")
    header = (tmp_path / "f.h").read_text()
    assert "F_IN_ARGS_0 = 0" in header and "F_IN_ARGS_2 = 1" in header and "F_INPUTS = 2" in header
    (got,) = called(tmp_path, "f", [X, X[0]], [X])
    np.testing.assert_array_equal(got, X - 2 * X[0])


def test_several_levels_are_chosen_by_target(tmp_path):
    compiled = jax.jit(jnp.sin).lower(X).compile()
    sizes = {}
    for targets in ("x86-64-v3", ["x86-64-v3", "x86-64-v4"], ("aarch64",)):
        compiled.write_object(tmp_path / "f.o", tmp_path / "f.h", targets=targets, name="f")
        sizes[str(targets)] = (tmp_path / "f.o").stat().st_size
        machine = (tmp_path / "f.o").read_bytes()[18]  # e_machine of ELF
        assert machine == (183 if "aarch64" in targets else 62)
    assert sizes["['x86-64-v3', 'x86-64-v4']"] > 1.3 * sizes["x86-64-v3"]


def test_keys_are_their_words(tmp_path):
    key = jax.random.key(7)
    jax.jit(lambda k: jax.random.uniform(k, (5,))).lower(key).compile().write_object(tmp_path / "u.o", tmp_path / "u.h", name="u")
    want = np.asarray(peer.random.uniform(peer.random.key(7), (5,)))
    (got,) = called(tmp_path, "u", [np.array([0, 7], np.uint32)], [want])
    np.testing.assert_array_equal(got, want)


def test_weights_are_in_a_file_of_their_own(tmp_path):
    w, small = rng.normal(size=(300, 3)).astype(np.float32), np.float32([1, 2, 3])
    x = rng.normal(size=300).astype(np.float32)
    compiled = jax.jit(lambda x: (x @ w + small, jnp.asarray(w))).lower(x).compile()
    compiled.write_object(tmp_path / "f.o", tmp_path / "f.h", name="f", weights=tmp_path / "f.bin")
    data = (tmp_path / "f.bin").read_bytes()
    assert data.count(w.tobytes()) == 1
    assert w.tobytes() not in (tmp_path / "f.o").read_bytes()
    header = (tmp_path / "f.h").read_text()
    assert f"#define F_WEIGHTS_BYTES {len(data)}\n" in header
    assert "void f(const void *const *inputs, void *const *outputs, void *arena, const void *weights);" in header
    aligned = np.zeros(len(data) + 64, np.uint8)
    start = -aligned.ctypes.data % 64
    aligned[start:start + len(data)] = np.frombuffer(data, np.uint8)
    got, same = called(tmp_path, "f", [x], [small, w], ctypes.c_void_p(aligned.ctypes.data + start))
    np.testing.assert_allclose(got, x @ w + small, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(same, w)
    compiled.write_object(tmp_path / "inside.o", tmp_path / "inside.h")
    assert w.tobytes() in (tmp_path / "inside.o").read_bytes()


def test_weights_that_there_are_not_are_refused(tmp_path):
    compiled = jax.jit(jnp.sin).lower(X).compile()
    with pytest.raises(ValueError, match="no constant of 256 bytes"):
        compiled.write_object(tmp_path / "f.o", tmp_path / "f.h", weights=tmp_path / "f.bin")
    assert not (tmp_path / "f.bin").exists()


@pytest.mark.parametrize("options, error, words", [
    ({"targets": "x86-64-v9"}, ValueError, ["x86-64-v9", "x86-64-v3", "'targets'"]),
    ({"targets": []}, ValueError, ["'targets'", "none"]),
    ({"targets": [3]}, TypeError, ["'targets'", "[3]"]),
    ({"name": 3}, TypeError, ["'name'", "int"]),
])
def test_wrong_arguments_are_named(tmp_path, options, error, words):
    compiled = jax.jit(jnp.sin).lower(X).compile()
    with pytest.raises(error) as raised:
        compiled.write_object(tmp_path / "f.o", tmp_path / "f.h", **options)
    for word in words:
        assert word in str(raised.value)
    assert not (tmp_path / "f.o").exists()


def test_what_an_object_cannot_hold_is_refused_by_name(tmp_path):
    def with_callback(x):
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    compiled = jax.jit(with_callback).lower(X).compile()
    with pytest.raises(NotImplementedError, match="pure_callback"):
        compiled.write_object(tmp_path / "f.o", tmp_path / "f.h")
    assert not (tmp_path / "f.o").exists()


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    compiled = jax.jit(jnp.sin).lower(X).compile()
    with pytest.raises(RuntimeError, match="nowhere"):
        compiled.write_object(tmp_path / "nowhere" / "f.o", tmp_path / "f.h")
