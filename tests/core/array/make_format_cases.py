"""Writes format_cases.tsv: arrays with the text that the installed jax and numpy print for them.

    python make_format_cases.py [OUTPUT]          (default: tests/data/format_cases.tsv.tar.xz)
"""
import os
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "data"))

import recordings  # noqa: E402

warnings.simplefilter("ignore")
jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(7)


def escape(text):
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")


def cases():
    nan, inf = np.nan, np.inf
    values = [
        0.0, -0.0, 1.0, 0.1, -2.5, 1e16, 1e15, 1e-5, 1.5e20, 123456.0, 1e6, 999999.0, nan, inf, -inf,
        [1, 2], [1, 2.5, -3], [0.1, 0.2, 1 / 3], [1e6, 1], [1e5, 1], [1e8, 2e8], [999999.0, 1e3], [1e-4, 1e-3], [9e-5, 1e-3],
        [1, 1001], [1, 1000], [nan, 1], [nan, inf], [nan], [inf, -inf, 1.25], [-inf, 100.0], [nan, 1e10],
        [0.0, -0.0], [1e-30, 1e30], [1.5, nan, 1e-7], [[1, 2], [3, 4.5]], [[nan, -1], [inf, 2]],
        [[[1, 2], [3, 4]], [[5, 6], [7, 8.125]]], [0.30000001192, 123.456789, 9.87654321], [16777216.0, 3], [65504.0, 1],
        [1e-8, 5], [2.0 ** -149, 1], [2.0 ** -24, 1], [0.000123, 0.1], [12345.678, 99999.9], [-1, -22, -333],
        np.zeros((0,)), np.zeros((2, 0)), np.zeros((0, 3)), np.zeros((1, 1, 1)), np.arange(40) / 7, np.arange(30.0),
        np.arange(24.0).reshape(2, 3, 4), np.arange(1001.0), np.arange(1000.0) % 7, np.ones((40, 30)), np.ones((3, 400)) * 0.5,
        np.ones((2, 2, 300)), rng.normal(size=20), rng.normal(size=(6, 7)) * 100, rng.normal(size=12) * 1e9, rng.normal(size=12) * 1e-7,
        np.ones((1,) * 16), np.arange(600.0).reshape(1, 600, 1)[:, :550].repeat(2, 0),
    ]
    for dtype in ["float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]:
        for value in values:
            if dtype.startswith(("float8", "bfloat")) and np.size(value) > 50:
                continue
            if dtype == "float64" and np.size(value) > 1100:
                continue
            yield np.asarray(value).astype(jnp.dtype(dtype))
    integers = [0, -5, 7, [1, 2, 3], [1, -20, 3], [[1, 2], [30, 4]], np.arange(40), np.arange(1001) % 100, np.zeros((0,)), np.arange(100) - 50]
    for dtype in ["int8", "int32", "int64", "uint8", "uint32", "uint64", "int4", "uint4", "int2"]:
        for value in integers:
            yield np.asarray(value).astype(np.int64).astype(jnp.dtype(dtype))
    yield np.asarray([2**63 - 1, -(2**63)])
    yield np.asarray([2**64 - 1], np.uint64)
    for value in [True, False, [True, False], [True, True], np.ones((3, 20), bool), np.zeros((0, 2), bool), np.arange(1200) % 3 == 0]:
        yield np.asarray(value)
    complexes = [0j, 1 + 2j, 2j, -0.0 + 2j, complex(nan, -inf), complex(-0.0, -0.0), 0.1 - 2j, complex(1, nan), 1e20 + 1e-9j,
                 [1 + 2j, 3.5 - 1e-3j], [1j, 2], [1 + 1j, -20.5 - 3j], [complex(nan, 1), complex(1, inf)], [complex(inf, -inf), 1],
                 np.arange(20) * (1 + 0.25j), np.zeros((0,))]
    for dtype in ["complex64", "complex128"]:
        for value in complexes:
            yield np.asarray(value).astype(dtype)


def literal(value):
    return str(value.item()) if value.ndim == 0 else "-"


lines = ["# dtype, shape, weak_type, bytes in hex, repr, str, and for scalars the text of a jaxpr literal"]


def add(array, weak, host):
    shape = ",".join(map(str, array.shape))
    lines.append("\t".join([str(array.dtype), shape, str(int(weak)), host.tobytes().hex(), escape(repr(array)), escape(str(array)),
                            literal(host) if array.dtype.name[:3] != "key" else "-"]))


for host in cases():
    add(jnp.asarray(host), False, host)
for value in [1, 1.0, 2j, 0.1]:
    array = jnp.asarray(value)
    add(array, True, np.asarray(array))
array = jnp.broadcast_to(1.0, (30,))
add(array, True, np.asarray(array))
for array in [jax.random.key(0), jax.random.split(jax.random.key(1), 3), jax.random.key(2, impl="rbg"), jax.random.key(2, impl="unsafe_rbg")]:
    add(array, False, np.asarray(jax.random.key_data(array)))
recordings.write(recordings.output("format_cases.tsv"), "\n".join(lines) + "\n")
