"""Writes random.expected: keys, bits and every distribution of jax.random, as the installed jax draws them.

    python make_random.py [OUTPUT]          (default: tests/data/random.expected.tar.xz)

Each record holds
    field function NAME          the function of jax.random
    field impl NAME              threefry2x32, rbg or unsafe_rbg
    field seed N                 the key is jax.random.key(N, impl=...); also array 'key' (a key array)
    field x64 0|1                1 if 64-bit types are enabled
    field shape D0,D1 | ()       the shape argument if one was given
    field dtype NAME             the dtype argument where given
    field param NAME VALUE       a static or scalar argument as Python writes it
    array ARGUMENT ...           an array argument, under the name of jax's signature
    array output ...             the draw (several outputs: several lines)
    field tolerance T            'exact', 'ulp N' or 'close R A' (judge.py)
    field flips F                this share of the draws may differ by more (a rejection loop that accepts another candidate)
"""
import os
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402

import expected  # noqa: E402
from expected import recordings  # noqa: E402

THREEFRY, RBG, UNSAFE_RBG = "threefry2x32", "rbg", "unsafe_rbg"
f32, f64, f16, bf16 = np.float32, np.float64, np.float16, ml_dtypes.bfloat16
SHAPES = [(), (7,), (3, 5)]
CLOSE = "close 1e-5 1e-6"
LOOSE = "close 2e-4 2e-5"
# A logarithm of a logarithm near 1: half a unit in the last place of the inner one is several units of the result.
TOLERANCES = {"gumbel": "ulp 8"}


def arg_text(value):
  return np.dtype(value).name if isinstance(value, type) or isinstance(value, np.dtype) else repr(value)


class Writer:
  """Collects records; draw() calls the function and writes its arguments."""

  def __init__(self):
    self.records, self.counts = [], {}

  def draw(self, function, seed=0, impl=THREEFRY, tolerance="exact", flips=None, x64=False, **arguments):
    with jax.enable_x64(x64):
      key = jax.random.key(seed, impl=impl)
      lines = [f"field function {function}", f"field impl {impl}", f"field seed {seed}", f"field x64 {int(x64)}"]
      for name, value in arguments.items():
        if name == "shape":
          lines.append("field shape " + (",".join(map(str, value)) or "()"))
        elif name == "dtype":
          lines.append(f"field dtype {np.dtype(value).name}")
        elif isinstance(value, np.ndarray):
          lines.append(expected.array_line(name, value))
        else:
          lines.append(f"field param {name} {arg_text(value)}")
      lines.append(expected.array_line("key", key))
      outputs = jax.tree.leaves(getattr(jax.random, function)(key, **arguments))
      for out in outputs:
        lines.append(expected.array_line("output", out, weak=out.aval.weak_type))
    lines.append(f"field tolerance {tolerance}")
    if flips:
      lines.append(f"field flips {flips}")
    number = self.counts[function] = self.counts.get(function, -1) + 1
    self.records.append((f"{function}/{number}", lines))


def keys_and_bits(w):
  for seed in (0, 1, 42, 1701, -1, 2**31 + 5):
    for impl in (THREEFRY, RBG, UNSAFE_RBG):
      w.draw("key_data", seed, impl)
      for count in (2, 3, (2, 3)):
        w.draw("split", seed, impl, num=count)
      for data in (0, 7, 2**31 + 1):
        w.draw("fold_in", seed, impl, data=data)
    for dtype in (np.uint8, np.uint16, np.uint32):
      for shape in SHAPES + [(64,)]:
        w.draw("bits", seed, shape=shape, dtype=dtype)
  for impl in (RBG, UNSAFE_RBG):
    for dtype in (np.uint8, np.uint16, np.uint32):
      w.draw("bits", 42, impl, shape=(3, 5), dtype=dtype)
  w.draw("bits", 42, x64=True, shape=(9,), dtype=np.uint64)
  w.draw("bits", 42, RBG, x64=True, shape=(9,), dtype=np.uint64)
  w.draw("key_data", 2**40 + 3, x64=True)


def exact_distributions(w):
  for seed in (0, 42):
    for shape in SHAPES:
      for dtype in (f32, f16, bf16):
        w.draw("uniform", seed, shape=shape, dtype=dtype)
        w.draw("uniform", seed, shape=shape, dtype=dtype, minval=-2.5, maxval=3.0)
      w.draw("uniform", seed, x64=True, shape=shape, dtype=f64)
      for dtype in (np.int32, np.uint32, np.int8, np.uint8, np.int16, np.uint16):
        w.draw("randint", seed, shape=shape, minval=0, maxval=100, dtype=dtype)
      w.draw("randint", seed, shape=shape, minval=-1000003, maxval=2**31 - 1, dtype=np.int32)
      w.draw("randint", seed, x64=True, shape=shape, minval=-5, maxval=2**40, dtype=np.int64)
      w.draw("bernoulli", seed, p=0.3, shape=shape)
      for dtype in (np.int32, f32):
        w.draw("rademacher", seed, shape=shape, dtype=dtype)
    w.draw("uniform", seed, RBG, shape=(3, 5), dtype=f32)
    w.draw("uniform", seed, UNSAFE_RBG, shape=(3, 5), dtype=f32)
    w.draw("randint", seed, RBG, shape=(3, 5), minval=0, maxval=10, dtype=np.int32)
    w.draw("bernoulli", seed, p=np.array([0.1, 0.5, 0.9], f32), shape=(4, 3))
    w.draw("bernoulli", seed, p=np.array([0.1, 0.5, 0.9], f32), shape=(4, 3), mode="high")
    w.draw("randint", seed, shape=(4, 3), minval=np.array([0, -5, 10], np.int32), maxval=np.array([1, 5, 9], np.int32))
    for n in (1, 2, 10, 33):
      w.draw("permutation", seed, x=n)
    w.draw("permutation", seed, x=np.arange(12, dtype=np.int32).reshape(4, 3))
    w.draw("permutation", seed, x=np.arange(12, dtype=np.int32).reshape(4, 3), axis=1)
    w.draw("permutation", seed, x=np.arange(12, dtype=np.int32).reshape(4, 3), axis=1, independent=True)
    w.draw("choice", seed, a=10, shape=(6,))
    w.draw("choice", seed, a=10, shape=(6,), replace=False)
    w.draw("choice", seed, a=np.arange(12, dtype=f32).reshape(4, 3), shape=(2, 2))
    w.draw("choice", seed, a=np.arange(12, dtype=f32).reshape(4, 3), shape=(2,), replace=False, axis=1)
    p = np.array([0.1, 0.2, 0.3, 0.25, 0.15], f32)
    w.draw("choice", seed, a=5, shape=(8,), p=p)
    w.draw("choice", seed, a=5, shape=(4,), replace=False, p=p)


def near_distributions(w):
  logits = np.array([[0.0, 1.0, 2.0, -1.0], [3.0, -2.0, 0.5, 0.25]], f32)
  for seed in (0, 42):
    for shape in SHAPES + [(64,)]:
      for dtype in (f32, f16, bf16):
        for function in ("normal", "gumbel", "exponential", "laplace"):
          w.draw(function, seed, tolerance=TOLERANCES.get(function, "ulp 4"), shape=shape, dtype=dtype)
        w.draw("truncated_normal", seed, tolerance="ulp 4", lower=-2.0, upper=2.0, shape=shape, dtype=dtype)
      for function in ("normal", "gumbel", "exponential", "laplace"):
        w.draw(function, seed, tolerance=TOLERANCES.get(function, "ulp 4"), x64=True, shape=shape, dtype=f64)
      w.draw("truncated_normal", seed, tolerance="ulp 4", lower=0.5, upper=3.0, shape=shape)
      for function in ("cauchy", "logistic", "maxwell", "lognormal"):
        w.draw(function, seed, tolerance=CLOSE, shape=shape)
    w.draw("gumbel", seed, tolerance=TOLERANCES["gumbel"], shape=(16,), mode="high")
    w.draw("normal", seed, RBG, tolerance="ulp 4", shape=(3, 5))
    w.draw("normal", seed, tolerance="ulp 4", shape=(5,), dtype=np.complex64)
    w.draw("lognormal", seed, tolerance=CLOSE, sigma=0.5, shape=(9,))
    w.draw("categorical", seed, logits=logits)
    w.draw("categorical", seed, logits=logits, shape=(5, 2))
    w.draw("categorical", seed, logits=logits, axis=0)
    w.draw("categorical", seed, logits=logits[0], shape=(3,), replace=False)
    w.draw("pareto", seed, tolerance=CLOSE, b=np.array([0.5, 2.0, 5.0], f32), shape=(4, 3))
    w.draw("weibull_min", seed, tolerance=CLOSE, scale=2.0, concentration=1.5, shape=(9,))
    w.draw("rayleigh", seed, tolerance=CLOSE, scale=np.array([0.5, 2.0, 5.0], f32), shape=(4, 3))
    w.draw("triangular", seed, tolerance=CLOSE, left=-1.0, mode=0.5, right=3.0, shape=(9,))
    w.draw("double_sided_maxwell", seed, tolerance=CLOSE, loc=1.0, scale=2.0, shape=(9,))
    w.draw("geometric", seed, tolerance="exact", p=np.array([0.1, 0.5, 0.9], f32), shape=(8, 3), flips="0.05")
    w.draw("wald", seed, tolerance=LOOSE, mean=np.array([0.5, 2.0, 5.0], f32), shape=(8, 3))


def gamma_family(w):
  alphas = np.array([0.3, 1.0, 4.5, 30.0], f32)
  w.draw("gamma", 42, tolerance="close 1e-5 0", flips="1e-4", a=alphas, shape=(5000, 4))
  for seed in (0, 42):
    for shape in SHAPES:
      w.draw("gamma", seed, tolerance="close 1e-5 0", a=2.5, shape=shape)
      w.draw("loggamma", seed, tolerance="close 1e-5 1e-6", a=0.7, shape=shape)
    w.draw("gamma", seed, tolerance="close 1e-11 0", x64=True, a=np.array([0.3, 4.5]), shape=(8, 2), dtype=f64)
    w.draw("gamma", seed, tolerance="close 2e-2 0", a=np.array([0.3, 4.5], bf16), shape=(8, 2), dtype=bf16)
    w.draw("loggamma", seed, tolerance=CLOSE, a=alphas, shape=(16, 4))
    w.draw("beta", seed, tolerance=CLOSE, a=np.array([0.5, 2.0], f32), b=np.array([1.5, 0.25], f32), shape=(16, 2))
    w.draw("dirichlet", seed, tolerance=CLOSE, alpha=np.array([0.5, 1.0, 4.0], f32), shape=(8,))
    w.draw("t", seed, tolerance=CLOSE, df=np.array([1.0, 3.5], f32), shape=(16, 2))
    w.draw("chisquare", seed, tolerance=CLOSE, df=np.array([1.0, 3.5], f32), shape=(16, 2))
    w.draw("f", seed, tolerance=CLOSE, dfnum=np.linspace(1, 4, 16, dtype=f32), dfden=np.linspace(2, 9, 16, dtype=f32),
           shape=(16,))
    w.draw("generalized_normal", seed, tolerance=CLOSE, p=1.5, shape=(16,))
    w.draw("ball", seed, tolerance=CLOSE, d=3, p=2, shape=(5,))
    w.draw("ball", seed, tolerance=CLOSE, d=4, p=1, shape=(2, 2))
    w.draw("poisson", seed, flips="0.02", lam=np.array([0.5, 4.0, 9.5, 50.0, 1000.0], f32), shape=(12, 5))
    w.draw("binomial", seed, flips="0.02", n=np.array([5.0, 20.0, 100.0], f32), p=np.array([0.1, 0.5, 0.9], f32), shape=(12, 3))
    w.draw("multinomial", seed, flips="0.1", n=np.array(50.0, f32), p=np.array([0.2, 0.3, 0.5], f32), shape=(6, 3))
    mean = np.array([1.0, -2.0, 0.5], f32)
    cov = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 1.5]], f32)
    for method in ("cholesky", "eigh", "svd"):
      # eigh and svd: the draw depends on the signs that LAPACK chooses for the vectors.
      w.draw("multivariate_normal", seed, tolerance=LOOSE, mean=mean, cov=cov, shape=(4,), method=method)
    w.draw("orthogonal", seed, tolerance=LOOSE, n=3)
    w.draw("orthogonal", seed, tolerance=LOOSE, n=4, shape=(2,))


def main():
  w = Writer()
  keys_and_bits(w)
  exact_distributions(w)
  near_distributions(w)
  gamma_family(w)
  comment = f"Draws of jax.random, made by tests/oracle/make_random.py with jax {jax.__version__}; fields: see there."
  expected.write(recordings.output("random.expected"), comment, w.records)
  undrawn = [n for n in jax.random.__dict__ if not n.startswith("_") and callable(getattr(jax.random, n))
             and n not in w.counts]
  print(f"{len(w.records)} records; not drawn: {' '.join(undrawn)}")


if __name__ == "__main__":
  main()
