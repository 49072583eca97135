"""Kernels of jax.experimental.pallas in interpret mode: the same results as jax's interpreter."""
import jax as oracle
import numpy as np
import pytest
from jax.experimental import pallas as oracle_pallas
from jax.experimental.pallas import tpu as _, triton as _  # noqa: F401, F811

import capibara.jax as jax
from capibara.jax.experimental import pallas

A = np.random.RandomState(0).normal(size=(8, 4)).astype(np.float32)
B = np.random.RandomState(1).normal(size=(4, 6)).astype(np.float32)


def added(module, pl):
  def kernel(x, y, o):
    o[...] = x[...] + 2 * y[...]
  call = pl.pallas_call(kernel, out_shape=module.ShapeDtypeStruct((8, 4), np.float32), interpret=True)
  return call(A, A), module.jit(call)(A, -A), module.vmap(call)(np.stack([A, A]), np.stack([A, 2 * A]))


def counted(module, pl):
  def kernel(o):
    o[pl.program_id(0)] = pl.program_id(0) + 10 * pl.num_programs(0)
  return pl.pallas_call(kernel, out_shape=module.ShapeDtypeStruct((5,), np.int32), grid=5, interpret=True)()


def blocked_matmul(module, pl):
  def kernel(x, y, o):
    o[...] = x[...] @ y[...]
  return pl.pallas_call(
      kernel, out_shape=module.ShapeDtypeStruct((8, 6), np.float32), grid=(2, 3), interpret=True,
      in_specs=[pl.BlockSpec((4, 4), lambda i, j: (i, 0)), pl.BlockSpec((4, 2), lambda i, j: (0, j))],
      out_specs=pl.BlockSpec((4, 2), lambda i, j: (i, j)))(A, B)


def summed_over_a_grid(module, pl):
  def kernel(x, o):
    @pl.when(pl.program_id(1) == 0)
    def _():
      o[...] = module.numpy.zeros_like(o)
    o[...] += x[...].sum(-1)
  return pl.pallas_call(
      kernel, out_shape=module.ShapeDtypeStruct((8,), np.float32), grid=(8, 2), interpret=True,
      in_specs=[pl.BlockSpec((None, 2), lambda i, k: (i, k))], out_specs=pl.BlockSpec((None,), lambda i, k: (i,)))(A)


def windows_and_masks(module, pl):
  def kernel(x, o):
    part = pl.ds(pl.program_id(0) * 2, 2)
    rows = pl.triton.load(x.at[part, :], mask=x[part, :] < 1, other=-7.0)
    pl.triton.store(o.at[part, :], rows, mask=rows > 0)
    o[part, 0] = rows[:, 0] * 2
  out = module.ShapeDtypeStruct((8, 4), np.float32)
  return pl.pallas_call(kernel, out_shape=out, grid=4, input_output_aliases={0: 0}, interpret=True)(A)


def prefetched(module, pl):
  def kernel(order, x, o, total):
    @pl.when(pl.program_id(0) == 0)
    def _():
      total[...] = module.numpy.zeros_like(total)
    total[...] += x[...]
    o[...] = total[...] * order[pl.program_id(0)]
  spec = pl.tpu.PrefetchScalarGridSpec(
      num_scalar_prefetch=1, grid=(4,), in_specs=[pl.BlockSpec((2, 4), lambda i, order: (order[i], 0))],
      out_specs=pl.BlockSpec((2, 4), lambda i, order: (i, 0)), scratch_shapes=[pl.tpu.VMEM((2, 4), np.float32)])
  call = pl.pallas_call(kernel, out_shape=module.ShapeDtypeStruct((8, 4), np.float32), grid_spec=spec, interpret=True)
  return call(np.array([2, 0, 3, 1], np.int32), A)


def in_place(module, pl):
  def kernel(x, o):
    o[1, :] = x[0, :] * 3
  return pl.pallas_call(kernel, out_shape=module.ShapeDtypeStruct((8, 4), np.float32), input_output_aliases={0: 0}, interpret=True)(A)


PROGRAMS = [added, counted, blocked_matmul, summed_over_a_grid, in_place, windows_and_masks, prefetched]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_a_kernel_gives_what_it_gives_on_jax(program):
  got, want = program(jax, pallas), program(oracle, oracle_pallas)
  for one, other in zip(oracle.tree.leaves(want), jax.tree.leaves(got), strict=True):
    np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-6)


def test_a_grid_that_does_not_divide_the_array():
  def kernel(x, o):
    o[...] = x[...] * 2
  spec = pallas.BlockSpec((3, 4), lambda i: (i, 0))
  out = jax.ShapeDtypeStruct((8, 4), "float32")
  call = pallas.pallas_call(kernel, out_shape=out, grid=(pallas.cdiv(8, 3),), in_specs=[spec], out_specs=spec)
  np.testing.assert_array_equal(call(A), 2 * A)


def test_the_kernel_of_tpus_is_refused_by_name():
  from capibara.jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel, splash_attention_mask
  mask = splash_attention_mask.MultiHeadMask([splash_attention_mask.CausalMask((4, 4))] * 2)
  assert mask.shape == (2, 4, 4) and mask[0, 1].tolist() == [True, True, False, False]
  with pytest.raises(NotImplementedError, match="make_splash_mha: .* use jax.nn.dot_product_attention"):
    splash_attention_kernel.make_splash_mha(mask=mask, head_shards=1, q_seq_shards=1)
