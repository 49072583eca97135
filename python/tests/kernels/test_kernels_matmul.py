"""Matmuls by strategy and precision, and einsum with a memory limit, against numpy, jax and float64."""

import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
oracle = pytest.importorskip("jax", reason="the peer is not installed")

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import kernels
from kernel_checks import close, draw, refuses

pytestmark = pytest.mark.wide


# --- matmuls ---------------------------------------------------------------------------------------------------------

PAIRS = [((5, 7), (7, 3)), ((7,), (7, 3)), ((5, 7), (7,)), ((7,), (7,)), ((2, 5, 7), (7, 3)), ((5, 7), (2, 7, 3)), ((2, 1, 5, 7), (3,
    7, 4)),
         ((0, 7), (7, 3)), ((5, 0), (0, 3)), ((1, 20000), (20000, 2))]


@pytest.mark.parametrize("strategy", ["auto", "local", "split_k", "collective"])
@pytest.mark.parametrize("shapes", PAIRS, ids=str)
def test_adaptive_matmul_is_matmul(strategy, shapes):
  a, b = (draw(i, *shape) for i, shape in enumerate(shapes))
  want = a.astype("float64") @ b.astype("float64")
  for call in (kernels.adaptive_matmul, jax.jit(lambda a, b, **o: kernels.adaptive_matmul(a, b, **o), static_argnames="tpu_strategy")):
    got = call(a, b, tpu_strategy=strategy)
    assert str(got.dtype) == "float32"
    close(got, want, 2e-5 if a.shape[-1] < 100 else 2e-3)


@pytest.mark.parametrize("algorithm", ["auto", "tpu_optimized", "split_k"])
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_optimized_matmul_transposes(algorithm, transpose_a, transpose_b):
  a, b = draw(0, *((2, 8, 5) if transpose_a else (2, 5, 8))), draw(1, *((2, 3, 8) if transpose_b else (2, 8, 3)))
  want = (a.swapaxes(-1, -2) if transpose_a else a) @ (b.swapaxes(-1, -2) if transpose_b else b)
  options = dict(transpose_a=transpose_a, transpose_b=transpose_b, algorithm=algorithm)
  close(kernels.optimized_matmul(a, b, **options), want)
  gradients = jax.grad(lambda a, b: (kernels.optimized_matmul(a, b, **options) ** 2).sum(), (0, 1))(a, b)
  plain = jax.grad(lambda a, b: (jnp.matmul(jnp.swapaxes(a, -1, -2) if transpose_a else a,
                                            jnp.swapaxes(b, -1, -2) if transpose_b else b) ** 2).sum(), (0, 1))(a, b)
  close(gradients, plain, 1e-4)


def test_no_transposed_copy_is_made():
  text = str(jax.make_jaxpr(lambda a, b: kernels.optimized_matmul(a, b, transpose_b=True))(draw(0, 5, 8), draw(1, 3, 8)))
  assert "transpose" not in text and "dimension_numbers=(([1], [1]), ([], []))" in text, text


def test_split_k_adds_parts_of_the_contracted_axis():
  text = str(jax.make_jaxpr(lambda a, b: kernels.adaptive_matmul(a, b, tpu_strategy="split_k"))(draw(0, 4, 64), draw(1, 64, 4)))
  assert "reshape" in text and "reduce_sum" in text and "[8,4,4]" in text, text


def test_precisions_round_the_operands():
  a, b = draw(0, 64, 300), draw(1, 300, 64)
  exact = a.astype("float64") @ b.astype("float64")
  error = lambda precision: np.abs(np.asarray(kernels.adaptive_matmul(a, b, precision=precision),
      "float64") - exact).max() / np.abs(exact).max()
  assert error("highest") < 1e-6 and error("float32") < 1e-6
  assert 1e-4 < error("bfloat16") < 1e-2
  assert 1e-5 < error("float16") < 2e-3
  rounded = jnp.asarray(a).astype("bfloat16").astype("float32") @ jnp.asarray(b).astype("bfloat16").astype("float32")
  close(kernels.optimized_matmul(a, b, precision="bfloat16"), rounded, 1e-5)
  # Low-precision types accumulate in float32, whatever the split.
  low = [jnp.asarray(x).astype("bfloat16") for x in (a, b)]
  for strategy in ("local", "split_k"):
    got = kernels.adaptive_matmul(*low, tpu_strategy=strategy)
    assert str(got.dtype) == "bfloat16"
    close(got.astype("float32"), rounded, 1e-2)
  assert str(kernels.adaptive_matmul(jnp.arange(6).reshape(2, 3), jnp.arange(3)).dtype) == "int32"


def test_matmul_refuses_by_name():
  a, b = draw(0, 4, 8), draw(1, 8, 4)
  refuses(lambda: kernels.adaptive_matmul(a, b, tpu_strategy="magic"),
      "'auto', 'local', 'split_k' or 'collective' (argument 'tpu_strategy'), got 'magic'")
  refuses(lambda: kernels.optimized_matmul(a, b, algorithm="cublas"),
      "'auto', 'tpu_optimized' or 'split_k' (argument 'algorithm')")
  refuses(lambda: kernels.adaptive_matmul(a, b, precision="double"), "'default', 'high', 'highest', 'float32', 'bfloat16'",
      "(argument 'precision'), got 'double'")
  refuses(lambda: kernels.adaptive_matmul(a, a), "contracted axes",
      "got 8 of float32[4,8] (argument 'a') and 4 of float32[4,8] (argument 'b')")
  refuses(lambda: kernels.adaptive_matmul(jnp.float32(1), b), "rank 1 or more (argument 'a')")
  refuses(lambda: kernels.optimized_matmul(a[0], b, transpose_a=True), "rank 2 or more (argument 'a')")


# --- einsum ----------------------------------------------------------------------------------------------------------

EQUATIONS = [
    ("bhnd,bhkd->bhnk", [(2, 3, 5, 4), (2, 3, 6, 4)]),
    ("ij,jk,kl->il", [(8, 2), (2, 9), (9, 3)]),
    ("ai,bi,ci->abc", [(4, 12), (5, 12), (6, 12)]),
    ("ia,ib,ic,id->abcd", [(12, 3), (12, 4), (12, 5), (12, 2)]),
    ("iaj,jbk,kci->abc", [(8, 3, 8), (8, 3, 8), (8, 3, 8)]),
    ("ij,jk,kl,lm,mi->", [(6, 7), (7, 8), (8, 9), (9, 4), (4, 6)]),
    ("ii,ij->j", [(6, 6), (6, 3)]),
    ("...i,...ij,...j->...", [(2, 6), (2, 6, 5), (1, 5)]),
    ("ab,bc", [(3, 4), (4, 5)]),
    ("abc->ca", [(3, 4, 5)]),
]


@pytest.mark.parametrize("equation, shapes", EQUATIONS, ids=[e for e, _ in EQUATIONS])
@pytest.mark.parametrize("options", [{}, {"optimize": "optimal"}, {"optimize": False}, {"memory_efficient": True},
                                     {"memory_efficient": True, "memory_limit": 20}, {"memory_efficient": True, "memory_limit": 3}],
                                         ids=str)
def test_einsum_optimize_is_einsum(equation, shapes, options):
  operands = [draw(i, *shape) for i, shape in enumerate(shapes)]
  want = np.einsum(equation, *[x.astype("float64") for x in operands])
  close(kernels.einsum_optimize(equation, operands, **options), want, 1e-4)
  close(jax.jit(lambda *xs: kernels.einsum_optimize(equation, xs, **options))(*operands), want, 1e-4)
  weights = draw(9, *want.shape)
  got = jax.grad(lambda xs: (kernels.einsum_optimize(equation, xs, **options) * weights).sum())(operands)
  plain = oracle.grad(lambda xs: (oracle.numpy.einsum(equation, *xs) * weights).sum())(operands)
  close(got, plain, 1e-3)


def largest(equation, operands, **options):
  text = kernels.einsum_plan(equation, operands, memory_efficient=True, **options)
  return float(text.split()[2]), text


def test_a_limit_changes_the_order_before_it_slices():
  # The order with fewest operations has an intermediate of 2000 * 2000; the other order none above 2000 * 3.
  operands = [draw(0, 2000, 3), draw(1, 3, 2000), draw(2, 2000, 1500), draw(3, 1500, 4)]
  size, text = largest("ij,jk,kl,lm->im", operands)
  assert "sliced" not in text and size <= 2000 * 1500
  operands = [draw(0, 60, 40), draw(1, 40, 60), draw(2, 60, 3)]
  size, text = largest("ij,jk,kl->il", operands, memory_limit=200)
  assert size == 40 * 3 and "sliced" not in text


def test_slices_keep_every_intermediate_below_the_limit():
  shapes = [(16, 20), (16, 24), (16, 28), (16, 12)]
  operands = [draw(i, *shape) for i, shape in enumerate(shapes)]
  equation = "ia,ib,ic,id->abcd"
  for limit in (5000, 500, 100, 16):
    size, text = largest(equation, operands, memory_limit=limit)
    assert size <= limit and "sliced along" in text, text
  close(kernels.einsum_optimize(equation, operands, memory_efficient=True, memory_limit=100), np.einsum(equation, *operands), 1e-4)
  # Without an explicit limit: no intermediate above the largest operand or result.
  assert largest(equation, operands)[0] <= 20 * 24 * 28 * 12


def test_the_compiled_program_needs_less_memory_where_it_slices():
  operands = [draw(i, 64, 64) for i in range(3)]
  equation = "ia,ib,ic->abc"  # one of the first two products is 64 ** 3 elements of [i, a, b] before the sum
  def temporaries(**options):
    return jax.jit(lambda *xs: (kernels.einsum_optimize(equation, xs, **options) ** 2).sum()).lower(*operands).compile().memory_analysis()
  free, bound = temporaries(), temporaries(memory_efficient=True, memory_limit=64 * 64)
  assert bound.temp_size_in_bytes < free.temp_size_in_bytes
  assert "scan[" in str(jax.make_jaxpr(lambda *xs: kernels.einsum_optimize(equation, xs, memory_efficient=True,
      memory_limit=4096))(*operands))


def test_einsum_under_vmap_and_jvp():
  a, b, c = draw(0, 3, 6, 4), draw(1, 3, 6, 5), draw(2, 3, 6, 7)
  f = lambda *xs: kernels.einsum_optimize("ia,ib,ic->abc", xs, memory_efficient=True, memory_limit=10)
  close(jax.vmap(f)(a, b, c), np.einsum("nia,nib,nic->nabc", a, b, c), 1e-4)
  got = jax.jvp(f, (a[0], b[0], c[0]), (a[1], b[1], c[1]))
  want = oracle.jvp(lambda *xs: oracle.numpy.einsum("ia,ib,ic->abc", *xs), (a[0], b[0], c[0]), (a[1], b[1], c[1]))
  close(got, want, 1e-4)


def test_einsum_sums_low_types_in_float32():
  x = jnp.ones((4096, 2), "bfloat16")
  for options in ({}, {"memory_efficient": True, "memory_limit": 64}):
    got = kernels.einsum_optimize("ia,ib,ic->abc", [x, x, x], **options)
    assert str(got.dtype) == "bfloat16" and float(got[0, 0, 0]) == 4096


def test_einsum_refuses_by_name():
  x = draw(0, 3, 3)
  refuses(lambda: kernels.einsum_optimize("ij,jk", [x, x], memory_limit=4), "'memory_limit' has a meaning with memory_efficient=True only")
  refuses(lambda: kernels.einsum_optimize("ij,jk", [x, x], memory_efficient=True, memory_limit=0),
      "positive number of elements (argument 'memory_limit'), got 0")
  refuses(lambda: kernels.einsum_optimize("ij,jk", []), "at least one array (argument 'operands')")
  refuses(lambda: kernels.einsum_optimize("ij,jk", [x]), "einsum")
  refuses(lambda: kernels.einsum_optimize("ij,jk", [x, x], precision="int4"), "(argument 'precision'), got 'int4'")
