"""Functions that jax exports, compiled to object files and run by a C program: the results are jax's."""

import functools
import os
import pathlib
import platform
import re
import shutil
import struct
import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax

COMMAND = os.environ.get("CAPIBARA_COMMAND", "build/capibara")
HARNESS = pathlib.Path(__file__).with_name("object_harness.c")

FOREIGN = {} if platform.machine() == "aarch64" else {
    "aarch64": ("aarch64-linux-gnu-gcc", ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"])}


def runs_here(target: str) -> bool:
    """Whether code for a target can be run on this machine, by an emulator at least."""
    if target in FOREIGN:
        compiler, emulator = FOREIGN[target]
        return bool(shutil.which(compiler) and shutil.which(emulator[0]))
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    needed = {"x86-64-v3,x86-64-v4": " avx2 ", "x86-64-v3": " avx2 ", "x86-64-v4": " avx512vl "}
    return target not in needed or needed[target] in flags.replace("\n", " ")


@functools.cache
def library_symbols(compiler: str) -> set[str]:
    """What libc and libm of this compiler offer."""
    found = set()
    for library in ("libc.so.6", "libm.so.6"):
        path = subprocess.run([compiler, f"-print-file-name={library}"], capture_output=True, text=True, check=True)
        listed = subprocess.run(["nm", "-D", "--defined-only", path.stdout.strip()], capture_output=True, text=True,
                                check=True)
        found |= {line.split()[-1].split("@")[0] for line in listed.stdout.splitlines()}
    return found


def write_exported(folder, f, args) -> pathlib.Path:
    path = folder / "f.exported"
    path.write_bytes(export.export(jax.jit(f))(*args).serialize())
    return path


def compile_object(folder, path, target="native", name="f"):
    return subprocess.run(
        [COMMAND, "compile", str(path), "--object", str(folder / "f.o"), "--header", str(folder / "f.h"), "--target",
         target, "--name", name], capture_output=True, text=True)


def undefined(folder) -> set[str]:
    listed = subprocess.run(["nm", "-u", str(folder / "f.o")], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in listed.stdout.splitlines()} - {"_GLOBAL_OFFSET_TABLE_"}


def run_object(folder, leaves, results, target="native", options=()):
    compiler, emulator = FOREIGN.get(target, ("cc", []))
    program = folder / "program"
    subprocess.run(
        [compiler, "-std=c11", "-O1", "-Wall", "-Werror", "-pie", "-fPIE", *options, "-include", str(folder / "f.h"),
         "-DFUNCTION=f", "-DINPUTS=F_INPUTS", "-DOUTPUTS=F_OUTPUTS", "-DARENA_BYTES=F_ARENA_BYTES", str(HARNESS),
         str(folder / "f.o"), "-lm", "-o", str(program)], check=True)
    arrays = [np.asarray(leaf) for leaf in leaves]
    data = b"".join(struct.pack("<q", a.nbytes) + a.tobytes() for a in arrays)
    data += b"".join(struct.pack("<q", r.nbytes) for r in results)
    done = subprocess.run([*emulator, str(program)], input=data, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    values, at = [], 0
    for r in results:
        values.append(np.frombuffer(done.stdout[at:at + r.nbytes], r.dtype).reshape(r.shape))
        at += r.nbytes
    assert at == len(done.stdout)
    return values


def is_exact(dtype) -> bool:
    return not (jnp.issubdtype(dtype, jnp.floating) or jnp.issubdtype(dtype, jnp.complexfloating))


def check(folder, f, *args, target="native", rtol=2e-5, atol=2e-5, options=()):
    compiled = compile_object(folder, write_exported(folder, f, args), target)
    assert compiled.returncode == 0, compiled.stderr
    compiler = FOREIGN.get(target, ("cc",))[0]
    assert undefined(folder) <= library_symbols(compiler)
    expected = [np.asarray(x) for x in jax.tree.leaves(jax.jit(f)(*args))]
    for got, want in zip(run_object(folder, jax.tree.leaves(args), expected, target, options), expected, strict=True):
        if is_exact(want.dtype):
            np.testing.assert_array_equal(got, want)
        else:
            wide = np.complex128 if jnp.issubdtype(want.dtype, jnp.complexfloating) else np.float64
            np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol=rtol, atol=atol)


rng = np.random.default_rng(38)


def normal(*shape, dtype=np.float32):
    return rng.normal(size=shape).astype(dtype)


def newton(x):
    def body(state):
        y, i = state
        return y - (y * y - x) / (2 * y), i + 1
    return lax.while_loop(lambda s: (jnp.abs(s[0] * s[0] - x) > 1e-5 * x) & (s[1] < 50), body, (x, 0))


def pendulum(state, torques):
    def step(s, u):
        angle, speed = s
        speed = speed + 0.01 * (u - jnp.sin(angle))
        angle = angle + 0.01 * speed
        return (angle, speed), angle
    return lax.scan(step, state, torques)


def lorenz(x, steps):
    def step(_, v):
        a, b, c = v
        return v + 0.01 * jnp.stack([10 * (b - a), a * (28 - c) - b, a * b - 8 / 3 * c])
    return lax.fori_loop(0, steps, step, x)


def lqr(a, b, q, r, x):
    """A horizon of Riccati steps by scan, then the first control."""
    def riccati(p, _):
        gain_left, gain_right = r + b.T @ p @ b, b.T @ p @ a
        k = gain_right / gain_left[0, 0]
        return q + a.T @ p @ (a - b @ k), k
    p, ks = lax.scan(riccati, q, None, length=20)
    return -ks[-1] @ x, p


def mlp(params, x):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return jax.nn.log_softmax(x @ w + b)


def mlp_params(*sizes):
    return [(normal(m, n) * np.float32(1 / np.sqrt(m)), normal(n)) for m, n in zip(sizes, sizes[1:])]


def conway(board, steps):
    def step(b, _):
        n = sum(jnp.roll(b, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)) - b
        return ((n == 3) | ((b == 1) & (n == 2))).astype(jnp.int32), n.sum()
    return lax.scan(step, board, None, length=steps)


class Norms:
    @staticmethod
    def layer_norm(x, scale, shift):
        mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(var + 1e-5) * scale + shift


CASES = {
    # ---- elementwise, reductions, shapes
    "axpy": (lambda a, x, y: a * x + y, np.float32(2.5), normal(100), normal(100)),
    "polynomial_f64": (lambda x: ((x * 2 + 1) * x - 3) * x, normal(33, dtype=np.float32)),
    "functions": (lambda x: (jnp.exp(x), jnp.log1p(jnp.abs(x)), jnp.tanh(x), jnp.sin(x), jnp.cos(x), jnp.arctan2(x, 2.0),
                             jax.scipy.special.erf(x), lax.cbrt(x), jnp.arcsinh(x)), normal(7, 13)),
    "powers": (lambda x, y: (jnp.abs(x) ** y, jnp.sqrt(jnp.abs(x)), lax.rsqrt(jnp.abs(x) + 1), x ** 3), normal(50),
               normal(50)),
    "gamma_functions": (lambda x: (lax.lgamma(x), lax.digamma(x), jax.scipy.special.gammainc(x, 1.5)),
                        np.abs(normal(20)) + np.float32(0.5)),
    "integers": (lambda x, y: (x // y, x % y, x << 2, x & y, lax.population_count(x), lax.clz(x)),
                 rng.integers(-1000, 1000, 40).astype(np.int32), rng.integers(1, 50, 40).astype(np.int32)),
    "bytes": (lambda x: (x + 100, x.astype(jnp.float32) / 3, jnp.sum(x, dtype=jnp.int32)),
              rng.integers(0, 255, 99).astype(np.uint8)),
    "booleans": (lambda x: (jnp.any(x > 1, 0), jnp.all(x < 3, 1), ~(x > 0)), normal(9, 11)),
    "softmax": (lambda x: jax.nn.softmax(x), normal(17, 100)),
    "layer_norm": (Norms.layer_norm, normal(12, 96), normal(96), normal(96)),
    "statistics": (lambda x: (x.mean(0), x.var(1), x.min(), x.max(0), jnp.prod(x[:2, :3])), normal(31, 19)),
    "transposes": (lambda x: (x.transpose(2, 0, 1) + 1, x.reshape(-1)[::-1], jnp.concatenate([x, x * 2], 1),
                              jnp.pad(x, ((1, 0), (0, 2), (1, 1)))), normal(3, 4, 5)),
    "complex_numbers": (lambda x, y: (x * y, jnp.exp(x), jnp.abs(y), x.real), normal(21) + 1j * normal(21),
                        normal(21) + 1j * normal(21)),
    "bfloat16": (lambda x: jax.nn.gelu(x), jnp.asarray(normal(64), jnp.bfloat16)),
    "float16": (lambda x: x * x + 1, normal(64).astype(np.float16)),
    "tree": (lambda p, *, scale=2.0: {"sum": p["a"] + p["b"][0], "same": p["a"], "twice": (p["a"], p["b"][1])},
             {"a": normal(5), "b": (normal(5), normal(2, 2))}),
    "constants": (lambda x, w=normal(64): (x + w, jnp.arange(7)), normal(64)),
    # ---- loops and branches
    "newton": (newton, np.float32(7.0)),
    "pendulum": (pendulum, (np.float32(0.1), np.float32(0)), normal(200)),
    "lorenz": (lorenz, np.array([1, 2, 3], np.float32), 20),
    "branches": (lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda y: y * 2], x), 2, normal(20)),
    "nested_loops": (lambda x: lax.fori_loop(0, 5, lambda i, y: lax.fori_loop(0, i, lambda j, z: z * 0.9 + j, y), x),
                     normal(300)),
    "life": (functools.partial(conway, steps=8), rng.integers(0, 2, (16, 24)).astype(np.int32)),
    "gradient": (jax.grad(lambda x: jnp.sum(jnp.tanh(x) ** 2 * jnp.sin(x))), normal(40)),
    "cumulative": (lambda x: (jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, 1), lax.cumlogsumexp(x, 0)),
                   normal(6, 30)),
    "threefry": (lambda key: jax.random.normal(jax.random.wrap_key_data(key), (50,)), np.array([3, 4], np.uint32)),
    # ---- indices, orders, windows
    "embedding": (lambda table, i: (table[i], table[i, 1], table.at[i].get(mode="fill", fill_value=-1)), normal(20, 8),
                  np.array([3, 19, 0, -1, 7], np.int32)),
    "take_along_axis": (lambda x: jnp.take_along_axis(x, jnp.argsort(x, 1), 1), normal(7, 12)),
    "scatters": (lambda x, i, u: (x.at[i].set(u), x.at[i].add(u), x.at[i].max(u), x.at[i].mul(u)), normal(30, 4),
                 np.array([1, 5, 29, 5, 100], np.int32), np.abs(normal(5, 4))),
    "histogram": (lambda x: jnp.zeros(8, jnp.int32).at[jnp.clip(x.astype(jnp.int32) + 4, 0, 7)].add(1), normal(500)),
    "arg_extremes": (lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0), jnp.argmax(x.at[3, 2].set(jnp.nan))), normal(9, 40)),
    "sorts": (lambda x, y: (jnp.sort(x, 1), jnp.argsort(-x, 0), lax.sort((x, y), num_keys=2)), normal(10, 33),
              normal(10, 33)),
    "top_k": (lambda x: lax.top_k(x, 5), normal(4, 50)),
    "median": (lambda x: (jnp.median(x, 0), jnp.quantile(x, 0.3)), normal(25, 3)),
    "pooling": (lambda x: (lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2), (1, 2, 2), "VALID"),
                           lax.reduce_window(x, 0.0, lax.add, (1, 3, 3), (1, 1, 1), "SAME")), normal(3, 8, 10)),
    # ---- matmuls and convolutions
    "matmul": (lambda a, b: a @ b, normal(37, 53), normal(53, 29)),
    "matmuls": (lambda a, b: (a.T @ b, a[:29] @ b.T, jnp.einsum("ij,ij->i", a, b), a[0] @ b.T,
                              b.T @ a[:, 0]), normal(31, 24), normal(31, 24)),
    "batched": (lambda a, b: (jnp.einsum("bij,bjk->bik", a, b), jnp.einsum("bij,bkj->bik", a, b.transpose(0, 2, 1)),
                              jnp.einsum("bij,cjk->bcik", a, b)), normal(4, 7, 19), normal(4, 19, 11)),
    "matmul_types": (lambda a, i: (lax.dot(i, i.T, preferred_element_type=jnp.int32),
                                   a.astype(jnp.bfloat16) @ a.T.astype(jnp.bfloat16), (a + 1j * a) @ a.T,
                                   a.astype(jnp.float16) @ a.T.astype(jnp.float16)), normal(18, 18),
                     rng.integers(-100, 100, (18, 18)).astype(np.int8)),
    "mlp": (mlp, mlp_params(784, 512, 10), normal(1, 784)),
    "mlp_batch": (mlp, mlp_params(20, 30, 5), normal(16, 20)),
    "mlp_gradient": (jax.grad(lambda p, x: mlp(p, x).sum()), mlp_params(12, 17, 5), normal(9, 12)),
    "lqr": (lqr, normal(4, 4) * np.float32(0.3), normal(4, 1), np.eye(4, dtype=np.float32), np.eye(1, dtype=np.float32),
            normal(4)),
    "convolutions": (lambda x, k, d: (
        lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
        lax.conv_general_dilated(x, k, (2, 1), "VALID", rhs_dilation=(1, 2), dimension_numbers=("NHWC", "HWIO", "NHWC")),
        lax.conv_general_dilated(x, k, (1, 1), ((2, 2), (3, 1)), lhs_dilation=(2, 2),
                                 dimension_numbers=("NHWC", "HWIO", "NHWC")),
        lax.conv_general_dilated(x, d, (1, 1), "SAME", feature_group_count=4,
                                 dimension_numbers=("NHWC", "HWIO", "NHWC"))),
        normal(2, 9, 8, 4), normal(3, 3, 4, 6), normal(3, 3, 1, 8)),
    "convolution_gradients": (jax.grad(lambda k, x: lax.conv_general_dilated(
        x, k, (1, 1), "SAME", feature_group_count=2, dimension_numbers=("NHWC", "HWIO", "NHWC")).sum() ** 2,
        argnums=(0, 1)), normal(3, 3, 2, 4), normal(2, 6, 5, 4)),
    "attention": (lambda q, k, v: jax.nn.softmax(q @ k.T / 4) @ v, normal(20, 16), normal(25, 16), normal(25, 16)),
}
TOLERANCES = {"bfloat16": 0.02, "float16": 2e-3, "matmul_types": 0.06, "gamma_functions": 1e-4, "lorenz": 1e-4,
              "convolution_gradients": 1e-3, "mlp_gradient": 1e-4}


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_jax(tmp_path, name):
    f, *args = CASES[name]
    tolerance = TOLERANCES.get(name, 2e-5)
    check(tmp_path, f, *args, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4", "aarch64"])
@pytest.mark.parametrize("name", ["functions", "softmax", "bytes", "bfloat16", "pendulum", "life", "embedding", "scatters",
                                  "sorts", "matmuls", "matmul_types", "mlp_batch", "lqr", "convolutions"])
def test_each_target_gives_the_same(tmp_path, name, target):
    if not runs_here(target):
        pytest.skip(f"code for {target} does not run here")
    f, *args = CASES[name]
    tolerance = TOLERANCES.get(name, 2e-5)
    check(tmp_path, f, *args, target=target, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["softmax", "pendulum", "scatters", "mlp", "convolutions"])
def test_the_harness_is_clean_under_the_address_sanitizer(tmp_path, name):
    f, *args = CASES[name]
    check(tmp_path, f, *args, options=["-fsanitize=address", "-g"])


@pytest.mark.parametrize("name", ["functions", "scatters", "mlp_batch", "lqr"])
def test_several_levels_are_one_function(tmp_path, name):
    levels = "x86-64-v3,x86-64-v4"
    if not runs_here(levels):
        pytest.skip("code for x86-64-v3 does not run here")
    f, *args = CASES[name]
    check(tmp_path, f, *args, target=levels)
    dumped = subprocess.run(["objdump", "-d", str(tmp_path / "f.o")], capture_output=True, text=True, check=True).stdout
    assert "zmm" in dumped and "ymm" in dumped and "cpuid" in dumped
    symbols = subprocess.run(["nm", "-g", "--defined-only", str(tmp_path / "f.o")], capture_output=True, text=True)
    assert [line.split()[-1] for line in symbols.stdout.splitlines()] == ["f"]


def code_bytes(folder) -> int:
    """Of instructions and their tables, without weights and without what a linker drops."""
    listed = subprocess.run(["size", "-A", str(folder / "f.o")], capture_output=True, text=True, check=True)
    return sum(int(line.split()[1]) for line in listed.stdout.splitlines() if line.startswith("."))


@pytest.mark.parametrize("name, most", [("mlp", 60_000), ("lqr", 30_000)])
@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4", "aarch64"])
def test_code_is_small(tmp_path, name, most, target):
    f, *args = CASES[name]
    compiled = compile_object(tmp_path, write_exported(tmp_path, f, args), target)
    assert compiled.returncode == 0, compiled.stderr
    assert 0 < code_bytes(tmp_path) < most


def test_the_header_names_each_leaf(tmp_path):
    def predict(params, x, *, scale):
        return {"y": x @ params["w"] + params["b"], "scaled": x * scale}

    params = {"w": normal(3, 2), "b": np.zeros(2, np.float32)}
    path = tmp_path / "f.exported"
    path.write_bytes(export.export(jax.jit(predict))(params, normal(4, 3), scale=jnp.float32(2)).serialize())
    compiled = compile_object(tmp_path, path, name="predict")
    assert compiled.returncode == 0, compiled.stderr
    header = (tmp_path / "f.h").read_text()
    for line in ["PREDICT_IN_ARGS_0_B = 0, /* inputs[0]: args[0]['b'], f32[2], 8 bytes",
                 "PREDICT_IN_ARGS_0_W = 1, /* inputs[1]: args[0]['w'], f32[3,2], 24 bytes",
                 "PREDICT_IN_ARGS_1 = 2, /* inputs[2]: args[1], f32[4,3], 48 bytes",
                 "PREDICT_IN_KWARGS_SCALE = 3, /* inputs[3]: kwargs['scale'], f32[], 4 bytes",
                 "PREDICT_OUT_RESULT_SCALED = 0, /* outputs[0]: result['scaled'], f32[4,3], 48 bytes",
                 "PREDICT_OUT_RESULT_Y = 1, /* outputs[1]: result['y'], f32[4,2], 32 bytes",
                 "void predict(const void *const *inputs, void *const *outputs, void *arena);"]:
        assert line in header
    assert re.search(r"#define PREDICT_ARENA_BYTES \d+\n", header)
    for language in ("c", "c++"):
        subprocess.run(["cc", "-x", language, "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only",
                        str(tmp_path / "f.h")], check=True)


CUSTOM_CALL = """module @m {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.custom_call @of_the_user(%arg0) {api_version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""
COLLECTIVE = """module @m attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 2 : i32} {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.all_reduce"(%arg0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""


@pytest.mark.parametrize("text, words", [(CUSTOM_CALL, ["of_the_user"]), (COLLECTIVE, ["all_reduce"])])
def test_what_an_object_cannot_hold_is_refused_by_name(tmp_path, text, words):
    path = tmp_path / "f.mlir"
    path.write_text(text)
    refused = compile_object(tmp_path, path)
    assert refused.returncode != 0
    assert not (tmp_path / "f.o").exists()
    for word in words:
        assert word in refused.stderr, refused.stderr


@pytest.mark.parametrize("target, words", [("x86-64-v9", ["x86-64-v9", "x86-64-v3"]),
                                           ("x86-64-v3,aarch64", ["x86-64-v3 before aarch64"])])
def test_targets_that_there_are_not_are_refused(tmp_path, target, words):
    f, *args = CASES["axpy"]
    refused = compile_object(tmp_path, write_exported(tmp_path, f, args), target)
    assert refused.returncode != 0
    for word in words:
        assert word in refused.stderr, refused.stderr
