"""Programs that call XLA FFI handlers: foreign_programs.py LIBRARY, with whatever `import jax` imports; prints one line of JSON."""
import ctypes
import gc
import json
import sys
import traceback

import numpy as np

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)
jax.devices()  # jaxlib accepts types before functions only once it has a client
LIBRARY = ctypes.cdll.LoadLibrary(sys.argv[1])
for function in ("counter_type", "counter_info"):
    getattr(LIBRARY, function).restype = ctypes.c_void_p
jax.ffi.register_ffi_target("rms_norm", jax.ffi.pycapsule(LIBRARY.RmsNorm), platform="cpu")
jax.ffi.register_ffi_target("attributes", jax.ffi.pycapsule(LIBRARY.Attributes), platform="cpu")
jax.ffi.register_ffi_target("accumulate", jax.ffi.pycapsule(LIBRARY.Accumulate), platform="cpu")
jax.ffi.register_ffi_type("counter", {"type_id": jax.ffi.pycapsule(LIBRARY.counter_type()),
                                      "type_info": jax.ffi.pycapsule(LIBRARY.counter_info())}, platform="cpu")
jax.ffi.register_ffi_target("count", {"instantiate": jax.ffi.pycapsule(LIBRARY.MakeCounter), "execute": jax.ffi.pycapsule(LIBRARY.Count)},
                            platform="cpu")

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 7 - 1
EPS = np.float32(1e-5)


def normalized(x, axis=-1):
    return x / np.sqrt((x * x).mean(axis, keepdims=True) + 1e-5)


def rms_norm(x, **options):
    return jax.ffi.ffi_call("rms_norm", jax.ShapeDtypeStruct(x.shape, x.dtype), **options)(x, eps=EPS)


def close(ours, expected):
    np.testing.assert_allclose(np.asarray(ours), expected, rtol=1e-6, atol=1e-6)


def eager():
    close(rms_norm(jnp.asarray(X)), normalized(X))


def compiled():
    close(jax.jit(lambda x: rms_norm(x * 2) + 1)(X), normalized(2 * X) + 1)


def in_a_loop():
    close(jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda i, x: rms_norm(x) * 2, x))(X), 2 * normalized(2 * normalized(2 * normalized(X))))


def vmaps():
    for method in ("sequential", "expand_dims", "broadcast_all"):
        close(jax.vmap(lambda x: rms_norm(x, vmap_method=method))(jnp.asarray(X)), normalized(X))
    try:
        jax.vmap(rms_norm)(jnp.asarray(X))
    except NotImplementedError as error:
        assert "vmap is only supported" in str(error)
    else:
        raise AssertionError("vmap without a method was not refused")


def layouts():
    x = jnp.asarray(X[0])
    close(rms_norm(x, input_layouts=[(1, 0)], output_layouts=(1, 0)), normalized_in_memory(X[0]))


def normalized_in_memory(x):
    """Rows of four elements of the transpose's memory, which the handler treats as rows of the array."""
    return normalized(np.ascontiguousarray(x.T).reshape(3, 4)).reshape(4, 3).T


def every_attribute():
    call = jax.ffi.ffi_call("attributes", jax.ShapeDtypeStruct((8,), np.float64))
    told = call(text='a "b"\n', whole=-5, narrow=np.int32(7), real=1.5, flag=True, list=np.array([3, 4, 9]), inner={"number": 11})
    assert np.asarray(told).tolist() == [6, -5, 7, 1.5, 1, 3, 9, 11], told


def in_place():
    step, start = jnp.arange(3, dtype=jnp.int32), jnp.ones(3, jnp.int32)
    call = jax.ffi.ffi_call("accumulate", jax.ShapeDtypeStruct((3,), np.int32), input_output_aliases={1: 0})
    assert np.asarray(jax.jit(call)(step, start)).tolist() == [1, 2, 3] and np.asarray(start).tolist() == [1, 1, 1]


def states():
    counting = jax.jit(lambda: jax.ffi.ffi_call("count", jax.ShapeDtypeStruct((), np.int32), has_side_effect=True)())
    assert [int(counting()) for _ in range(3)] == [1, 2, 3]
    assert LIBRARY.counters_alive() == 1
    del counting
    jax.clear_caches()
    gc.collect()
    assert LIBRARY.counters_alive() == 0


def errors():
    nameless = jax.ffi.ffi_call("rms_norm", jax.ShapeDtypeStruct((3,), np.float32))
    for text, call in (("must have a dimension", lambda: jax.jit(rms_norm)(np.float32(1))),
                       ("eps|attribute", lambda: nameless(X[0, 0, :3])),
                       ("not_there", lambda: jax.ffi.ffi_call("not_there", jax.ShapeDtypeStruct((), np.float32))()),
                       ("cannot be differentiated", lambda: jax.grad(lambda x: rms_norm(x).sum())(jnp.asarray(X)))):
        try:
            jax.block_until_ready(call())
        except Exception as error:
            assert any(word in str(error) for word in text.split("|")), error
        else:
            raise AssertionError(f"nothing was raised: {text}")


PROGRAMS = [eager, compiled, in_a_loop, vmaps, layouts, every_attribute, in_place, states, errors]

results = {}
for program in PROGRAMS:
    try:
        program()
        results[program.__name__] = ""
    except Exception:
        results[program.__name__] = traceback.format_exc()
print(json.dumps(results))
