"""jax functions to compile to object files, with their arguments."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

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
    """A horizon of Riccati steps as a scan, then the first control."""
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
    "sort_types": (lambda x, z, i: (jnp.sort(x, 1), jnp.sort(x, 0, descending=True), jnp.argsort(x, 2), jnp.sort(z), jnp.sort(i),
                                    jnp.sort(i > 5), jnp.sort(x.astype(jnp.bfloat16)), jnp.sort(x.astype(jnp.float16), 0),
                                    jnp.lexsort((i % 3, i % 5))), np.where(normal(4, 17, 5) > 1, np.nan, normal(4, 17, 5)),
                   normal(40) + 1j * normal(40), rng.integers(-9, 9, 130).astype(np.int8)),
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
    "many_rows": (lambda a, b: (a @ b, a[:1031] @ b[:, :64]), normal(2500, 260), normal(260, 70)),
    "large_matmuls": (lambda a, b, c: (a @ b, c.T @ b, a @ c, (c[:300] @ c.T)[:70], jnp.einsum("ij,kj->ki", b[:, :200], a[:200, :200])),
                      normal(50, 800), normal(800, 331), normal(800, 90)),
    "attention": (lambda q, k, v: jax.nn.softmax(q @ k.T / 4) @ v, normal(20, 16), normal(25, 16), normal(25, 16)),
}
TOLERANCES = {"bfloat16": 0.02, "float16": 2e-3, "matmul_types": 0.06, "gamma_functions": 1e-4, "lorenz": 1e-4,
              "large_matmuls": 2e-4, "many_rows": 2e-4, "convolution_gradients": 1e-3, "mlp_gradient": 1e-4}

# Measured by benchmarks/objects/objects.py, and run for another architecture by a long test.
PLAIN = ["axpy", "functions", "integers", "bytes", "softmax", "layer_norm", "statistics", "complex_numbers", "bfloat16", "newton",
         "pendulum", "lorenz", "branches", "life", "gradient", "cumulative", "threefry", "embedding", "scatters", "sorts", "pooling",
         "mlp", "mlp_gradient", "lqr", "attention"]
