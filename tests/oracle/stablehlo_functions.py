"""Functions of jax.lax and jax.numpy whose StableHLO text our reader must accept and evaluate to jax's values.

FUNCTIONS maps a name to (function, arguments as numpy arrays, tolerance or None). Tolerances are those of judge.py; None is
the default of the dtype. Names begin with their family: elementwise, special, compare, bits, reduce, window, cumulative,
sort, shape, index, contract, conv, control, linalg, fft, random, numpy, einsum, nn, type, transform, structure.
"""
import jax
import jax.numpy as jnp
import jax.scipy as jsp
import ml_dtypes
import numpy as np
from jax import lax

FUNCTIONS = {}
bf16, f16, f32 = ml_dtypes.bfloat16, np.float16, np.float32
LOOSE = "close 1e-3 1e-4"


def add(name, function, *arguments, tolerance=None):
  assert name not in FUNCTIONS, name
  FUNCTIONS[name] = (function, [np.asarray(a) for a in arguments], tolerance)


def F(*shape, seed=0, dtype=f32, scale=2.0):
  """Distinct numbers of both signs."""
  size = int(np.prod(shape))
  values = ((np.arange(size) * 37 + seed * 23 + 5) % 101 - 50) / 50.0 * scale
  return (values + 0.001 * (np.arange(size) % 7)).astype(dtype).reshape(shape)


def P(*shape, seed=0, dtype=f32, low=0.1, high=3.0):
  """Positive numbers."""
  size = int(np.prod(shape))
  return (low + (high - low) * ((np.arange(size) * 29 + seed * 17 + 3) % 97) / 96.0).astype(dtype).reshape(shape)


def U(*shape, seed=0, dtype=f32):
  """Numbers inside (-1, 1)."""
  return F(*shape, seed=seed, dtype=f32, scale=0.95).astype(dtype)


def I(*shape, seed=0, dtype=np.int32, low=-9, high=10):
  size = int(np.prod(shape))
  return (low + (np.arange(size) * 31 + seed * 7 + 2) % (high - low)).astype(dtype).reshape(shape)


def B(*shape, seed=0):
  size = int(np.prod(shape))
  return ((np.arange(size) * 5 + seed) % 3 == 0).reshape(shape)


HARD = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, -2.5, 3.5, 1e30], f32)


def elementwise():
  for name in ("sin cos tan tanh sinh cosh exp exp2 expm1 abs neg sign floor ceil cbrt logistic asinh atan square "
               "is_finite real conj").split():
    if name in ("real", "conj"):
      add(f"elementwise_{name}_complex", getattr(lax, name), F(5) + 1j * F(5, seed=1).astype(f32))
    else:
      add(f"elementwise_{name}", getattr(lax, name), F(3, 4))
  for name in "log log1p sqrt rsqrt acosh".split():
    add(f"elementwise_{name}", getattr(lax, name), P(3, 4, low=1.1))
  for name in "asin acos atanh".split():
    add(f"elementwise_{name}", getattr(lax, name), U(3, 4))
  for name in "sin tanh exp abs sign floor round is_finite sqrt log".split():
    add(f"elementwise_hard_{name}", getattr(lax, name), HARD)
  add("elementwise_round_to_even", lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), np.arange(-3, 3, 0.5, f32))
  for name in "add sub mul div rem pow max min atan2 nextafter".split():
    rhs = P(3, 4, seed=2)
    add(f"elementwise_{name}", getattr(lax, name), P(3, 4) if name == "pow" else F(3, 4), rhs)
  for name in "add sub mul div rem max min".split():
    add(f"elementwise_int_{name}", getattr(lax, name), I(3, 4), I(3, 4, seed=1, low=1))
  add("elementwise_integer_pow", lambda x: lax.integer_pow(x, -3), P(6))
  add("elementwise_pow_int_exponent", lambda x: lax.pow(x, np.int32(3)), F(6))
  add("elementwise_clamp", lambda x: lax.clamp(-0.5, x, 0.75), F(3, 4))
  add("elementwise_select", lax.select, B(3, 4), F(3, 4), F(3, 4, seed=1))
  add("elementwise_select_n", lax.select_n, I(6, low=0, high=3), F(6), F(6, seed=1), F(6, seed=2))
  add("elementwise_complex_parts", lambda a, b: lax.exp(lax.complex(a, b)) * 2.0, F(4), F(4, seed=1))
  for dtype in (bf16, f16):
    add(f"elementwise_chain_{np.dtype(dtype).name}", lambda x, y: lax.tanh(x * y) + lax.exp(-x), F(6, dtype=dtype), F(6, seed=1, dtype=dtype))


def special():
  for name in "erf erfc lgamma digamma bessel_i0e bessel_i1e".split():
    add(f"special_{name}", getattr(lax, name), P(3, 4), tolerance=LOOSE)
  add("special_erf_inv", lax.erf_inv, U(8), tolerance=LOOSE)
  add("special_igamma", lax.igamma, P(6), P(6, seed=1), tolerance=LOOSE)
  add("special_igammac", lax.igammac, P(6), P(6, seed=1), tolerance=LOOSE)
  add("special_zeta", lax.zeta, P(5, low=1.5), P(5, seed=1), tolerance=LOOSE)
  add("special_polygamma", lax.polygamma, np.array([0, 1, 2, 3], f32), P(4), tolerance=LOOSE)
  add("special_betainc", lax.betainc, P(5), P(5, seed=1), P(5, seed=2, low=0.05, high=0.95), tolerance=LOOSE)
  add("special_i0", jsp.special.i0, F(5), tolerance=LOOSE)
  add("special_ndtri", jsp.special.ndtri, P(5, low=0.05, high=0.95), tolerance=LOOSE)
  add("special_logsumexp", lambda x: jsp.special.logsumexp(x, axis=1), F(3, 4))
  add("special_xlogy", jsp.special.xlogy, P(5), P(5, seed=1))
  add("special_expit_logit", lambda x: jsp.special.logit(jsp.special.expit(x)), F(5), tolerance=LOOSE)


def compare_and_bits():
  for name in "eq ne lt le gt ge".split():
    add(f"compare_{name}", getattr(lax, name), HARD, HARD[::-1].copy())
  add("compare_int_unsigned", lax.lt, I(6, dtype=np.uint8, low=0, high=255), I(6, seed=3, dtype=np.uint8, low=0, high=255))
  add("compare_complex_eq", lax.eq, (F(4) + 1j).astype(np.complex64), (F(4) + 1j).astype(np.complex64))
  for name in "bitwise_and bitwise_or bitwise_xor".split():
    add(f"bits_{name}", getattr(lax, name), I(6), I(6, seed=1))
  add("bits_not", lax.bitwise_not, I(6, dtype=np.uint8, low=0, high=255))
  add("bits_not_bool", lax.bitwise_not, B(6))
  for name in "shift_left shift_right_arithmetic shift_right_logical".split():
    add(f"bits_{name}", getattr(lax, name), I(6), np.array([0, 1, 5, 31, 32, 40], np.int32))
  add("bits_population_count", lax.population_count, I(6))
  add("bits_clz", lax.clz, I(6))
  add("bits_bitcast_same", lambda x: lax.bitcast_convert_type(x, np.int32), F(5))
  add("bits_bitcast_narrow", lambda x: lax.bitcast_convert_type(x, np.uint8), F(3))
  add("bits_bitcast_wide", lambda x: lax.bitcast_convert_type(x, np.float32), I(3, 4, dtype=np.uint8, low=0, high=120))
  add("bits_reduce_precision", lambda x: lax.reduce_precision(x, 5, 4), F(6))


def types():
  for source, target in (("float32", "bfloat16"), ("float32", "int32"), ("int32", "float32"), ("float32", "float16"),
                         ("int32", "uint8"), ("bool", "float32"), ("float32", "bool"), ("int8", "int32"),
                         ("bfloat16", "float32"), ("uint8", "int8"), ("float32", "complex64")):
    x = B(6) if source == "bool" else I(6, dtype=np.uint8, low=0, high=255) if source == "uint8" else F(6).astype(
        np.dtype(bf16) if source == "bfloat16" else source)
    add(f"type_{source}_to_{target}", lambda x, target=target: lax.convert_element_type(x, jnp.dtype(target)), x)
  for target in ("float8_e4m3fn", "float8_e5m2", "int4", "uint4", "float8_e4m3b11fnuz"):
    add(f"type_{target}_and_back", lambda x, target=target: lax.convert_element_type(
        lax.convert_element_type(x, jnp.dtype(target)), f32), I(8, low=0, high=7).astype(f32))


def reductions():
  for name in "sum max min prod".split():
    add(f"reduce_{name}", lambda x, name=name: getattr(lax, f"reduce_{name}")(x, axes=(0, 2)), F(2, 3, 4))
  add("reduce_and", lambda x: lax.reduce_and(x, axes=(1,)), B(3, 4))
  add("reduce_or", lambda x: lax.reduce_or(x, axes=(0,)), B(3, 4))
  add("reduce_xor", lambda x: lax.reduce_xor(x, axes=(0,)), I(3, 4))
  add("reduce_argmax", lambda x: lax.argmax(x, 1, np.int32), F(3, 4))
  add("reduce_argmin_nan", lambda x: lax.argmin(x, 0, np.int32), HARD)
  add("reduce_general", lambda x: lax.reduce(x, f32(1), lambda a, b: a * b + 0.5 * b - 0.5 * b, (1,)), P(3, 4), tolerance=LOOSE)
  add("reduce_variadic", lambda x, i: lax.reduce((x, i), (f32(-np.inf), np.int32(0)), lambda a, b: (
      lax.max(a[0], b[0]), lax.select(a[0] >= b[0], a[1], b[1])), (0,)), F(7), np.arange(7, dtype=np.int32))
  add("reduce_empty_axis", lambda x: lax.reduce_sum(x, axes=(1,)), np.zeros((3, 0), f32))
  add("reduce_bf16_sum", lambda x: jnp.sum(x, axis=1), F(3, 40, dtype=bf16))
  for name in "sum mean max min prod std var any all ptp median".split():
    add(f"numpy_{name}", lambda x, name=name: getattr(jnp, name)(x, axis=1), F(3, 5))
  add("numpy_nanmean", lambda x: jnp.nanmean(x), np.array([1.0, np.nan, 3.0], f32))
  add("numpy_average", lambda x, w: jnp.average(x, weights=w), F(5), P(5))
  add("numpy_quantile", lambda x: jnp.quantile(x, 0.3), F(9))
  add("numpy_cumsum", lambda x: jnp.cumsum(x, axis=1), F(3, 5))
  add("numpy_diff_prod", lambda x: jnp.cumprod(jnp.diff(x)), F(5))


def windows():
  add("window_max_pool", lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME"), F(1, 5, 5, 2))
  add("window_sum_dilated", lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 2), ((1, 0), (0, 1)), (2, 1), (1, 2)), F(4, 5))
  add("window_general", lambda x: lax.reduce_window(x, 1.0, lambda a, b: a * b, (3,), (1,), "VALID"), F(7))
  add("window_avg_pool_grad", jax.grad(lambda x: jnp.sum(lax.reduce_window(x, 0.0, lax.add, (2, 2), (2, 2), "VALID") ** 2)), F(4, 4))
  add("window_max_pool_grad", jax.grad(lambda x: jnp.sum(lax.reduce_window(x, -np.inf, lax.max, (2, 2), (2, 2), "VALID") ** 2)), F(4, 4))
  add("window_conv_patches", lambda x: lax.conv_general_dilated_patches(x, (2, 2), (1, 1), "VALID"), F(1, 2, 4, 4))
  for name in "cumsum cumprod cummax cummin cumlogsumexp".split():
    add(f"cumulative_{name}", lambda x, name=name: getattr(lax, name)(x, axis=1), F(2, 5))
    add(f"cumulative_{name}_reverse", lambda x, name=name: getattr(lax, name)(x, axis=0, reverse=True), F(5))


def sorting():
  add("sort_float_nan", lambda x: lax.sort(x), HARD)
  add("sort_int_axis", lambda x: lax.sort(x, dimension=0), I(4, 3))
  add("sort_pairs", lambda k, v: lax.sort((k, v), num_keys=1), I(7, low=0, high=4), F(7))
  add("sort_two_keys", lambda a, b: lax.sort((a, b), num_keys=2), I(8, low=0, high=3), F(8))
  add("sort_argsort_descending", lambda x: jnp.argsort(x, descending=True), F(7))
  add("sort_top_k", lambda x: lax.top_k(x, 3), F(2, 6))
  add("sort_unique", lambda x: jnp.unique(x, size=5, fill_value=-1), I(9, low=0, high=4))
  add("sort_searchsorted", lambda a, v: jnp.searchsorted(a, v), np.sort(F(8)), F(5, seed=2))
  add("sort_lexsort", lambda a, b: jnp.lexsort((a, b)), I(6, low=0, high=3), I(6, seed=1, low=0, high=3))
  add("sort_complex", lambda x: jnp.sort(x), (F(5) + 1j * F(5, seed=1)).astype(np.complex64))


def shape_operations():
  add("shape_reshape", lambda x: lax.reshape(x, (4, 3), (1, 0)), F(3, 4))
  add("shape_transpose", lambda x: lax.transpose(x, (2, 0, 1)), F(2, 3, 4))
  add("shape_broadcast_in_dim", lambda x: lax.broadcast_in_dim(x, (2, 3, 4), (1,)), F(3))
  add("shape_pad", lambda x: lax.pad(x, 0.5, ((1, 2, 1), (-1, 0, 0))), F(3, 4))
  add("shape_slice", lambda x: lax.slice(x, (1, 0), (3, 4), (1, 2)), F(3, 4))
  add("shape_rev", lambda x: lax.rev(x, (0, 1)), F(3, 4))
  add("shape_concatenate", lambda a, b: lax.concatenate([a, b, a], 1), F(2, 3), F(2, 1))
  add("shape_iota", lambda: lax.broadcasted_iota(np.int32, (3, 4), 1))
  add("shape_iota_float", lambda: lax.iota(f32, 5))
  add("shape_squeeze_expand", lambda x: lax.expand_dims(lax.squeeze(x, (1,)), (0, 3)), F(3, 1, 2))
  add("shape_rank_zero", lambda x: x * 2.0 + 1.0, f32(3.0))
  add("shape_zero_size", lambda x: lax.concatenate([x, x + 1.0], 0), np.zeros((0, 3), f32))
  add("shape_full", lambda: lax.full((2, 3), 7, np.int32))
  add("shape_tile_roll", lambda x: jnp.roll(jnp.tile(x, (2, 2)), 3), F(2, 3))
  add("shape_stack_split", lambda x: jnp.stack(jnp.split(x, 3, axis=1)), F(2, 6))
  add("shape_repeat", lambda x: jnp.repeat(x, 3, axis=1), F(2, 3))
  add("shape_tril_triu", lambda x: jnp.tril(x) - jnp.triu(x, 1), F(4, 4))
  add("shape_eye_diag", lambda x: jnp.eye(3) * 2 + jnp.diag(x), F(3))
  add("shape_meshgrid", lambda x, y: jnp.meshgrid(x, y), F(3), F(2))
  add("shape_where_moveaxis", lambda x: jnp.moveaxis(jnp.where(x > 0, x, 0.0), 0, -1), F(2, 3, 4))
  add("shape_linspace_arange", lambda: jnp.linspace(0.0, 1.0, 7) + jnp.arange(7))
  add("shape_pad_modes", lambda x: (jnp.pad(x, 2, mode="reflect"), jnp.pad(x, 1, mode="edge"), jnp.pad(x, 1, mode="wrap")), F(4))


def indexing():
  add("index_static", lambda x: x[1, ::2], F(3, 5))
  add("index_negative", lambda x: x[-1, -3:-1], F(3, 5))
  add("index_array", lambda x, i: x[i], F(5, 3), I(4, low=-5, high=8))
  add("index_two_arrays", lambda x, i, j: x[i, :, j], F(4, 2, 5), I(3, low=0, high=4), I(3, seed=1, low=0, high=5))
  add("index_bool_where", lambda x: jnp.where(x > 0, size=4, fill_value=-1), F(9))
  add("index_dynamic_slice", lambda x, i: lax.dynamic_slice(x, (i, 1), (2, 3)), F(4, 5), np.int32(7))
  add("index_dynamic_update_slice", lambda x, u, i: lax.dynamic_update_slice(x, u, (i, i)), F(4, 5), F(2, 2, seed=1), np.int32(-1))
  add("index_dynamic_index", lambda x, i: lax.dynamic_index_in_dim(x, i, 1, keepdims=False), F(3, 4), np.int32(2))
  for mode in ("clip", "fill", "promise_in_bounds"):
    low, high = (0, 5) if mode == "promise_in_bounds" else (-2, 9)
    add(f"index_take_{mode}", lambda x, i, mode=mode: x.at[i].get(mode=mode), F(5, 2), I(2, 3, low=low, high=high))
  add("index_take_wrap", lambda x, i: jnp.take(x, i, mode="wrap"), F(5), I(6))
  add("index_take_along_axis", lambda x, i: jnp.take_along_axis(x, i, axis=1), F(3, 4), I(3, 2, low=0, high=4))
  add("index_gather_window", lambda x, i: lax.gather(x, i, lax.GatherDimensionNumbers((1, 2), (), (0, 1)), (2, 2), mode="clip"), F(4, 5), I(3, 2, low=-1, high=6))
  add("index_gather_batching", lambda x, i: jax.vmap(lambda a, b: a[b])(x, i), F(3, 5), I(3, 2, low=0, high=5))
  for name in "set add multiply min max divide power apply".split():
    if name == "apply":
      add("index_at_apply", lambda x, i: x.at[i].apply(jnp.sin), F(6), I(3, low=0, high=6))
    else:
      add(f"index_at_{name}", lambda x, i, u, name=name: getattr(x.at[i], name)(u), P(6), np.array([1, 4, 9], np.int32), P(3, seed=1))
  add("index_at_add_repeated", lambda x, i, u: x.at[i].add(u), F(5), np.array([1, 1, 1, 3], np.int32), F(4, seed=2))
  add("index_at_set_slice", lambda x, u: x.at[1:3, ::2].set(u), F(4, 5), F(2, 3, seed=1))
  add("index_at_get_fill", lambda x, i: x.at[i].get(mode="fill", fill_value=9.0), F(5), I(4, low=-8, high=9))
  add("index_scatter_drop", lambda x, i, u: x.at[i].set(u, mode="drop"), F(5), np.array([0, 7, 2], np.int32), F(3, seed=1))
  add("index_scatter_window", lambda x, i, u: lax.scatter_add(x, i, u, lax.ScatterDimensionNumbers((1,), (0,), (0,))), F(4, 3), I(2, 1, low=0, high=4), F(2, 3, seed=1))
  add("index_scatter_apply_int", lambda x, i, u: lax.scatter_mul(x, i, u, lax.ScatterDimensionNumbers((), (0,), (0,))), I(5), np.array([[1], [1], [2]], np.int32), I(3, seed=2))
  add("index_segment_sum", lambda x, i: jax.ops.segment_sum(x, i, 4), F(6), I(6, low=0, high=4))
  add("index_one_hot", lambda i: jax.nn.one_hot(i, 5), I(4, low=0, high=5))
  add("index_bincount", lambda i: jnp.bincount(i, length=6), I(12, low=0, high=6))


def contractions():
  add("contract_dot", lax.dot, F(3, 4), F(4, 2, seed=1))
  add("contract_vector_dot", lax.dot, F(5), F(5, seed=1))
  add("contract_dot_general", lambda a, b: lax.dot_general(a, b, (((2,), (1,)), ((0,), (0,)))), F(2, 3, 4), F(2, 4, 5, seed=1))
  add("contract_int", lambda a, b: lax.dot(a, b), I(3, 4), I(4, 2, seed=1))
  add("contract_bf16_to_f32", lambda a, b: lax.dot(a, b, preferred_element_type=f32), F(3, 4, dtype=bf16), F(4, 2, seed=1, dtype=bf16))
  add("contract_precision", lambda a, b: lax.dot(a, b, precision=lax.Precision.HIGHEST), F(3, 4), F(4, 2, seed=1))
  add("contract_outer", jnp.outer, F(3), F(4, seed=1))
  add("contract_matmul_broadcast", jnp.matmul, F(2, 1, 3, 4), F(5, 4, 2, seed=1))
  add("contract_tensordot", lambda a, b: jnp.tensordot(a, b, axes=([1, 2], [0, 1])), F(2, 3, 4), F(3, 4, 5, seed=1))
  add("contract_kron", jnp.kron, F(2, 2), F(2, 3, seed=1))
  add("contract_vdot_complex", jnp.vdot, (F(4) + 1j * F(4, seed=1)).astype(np.complex64), (F(4, seed=2) + 1j * F(4, seed=3)).astype(np.complex64))
  for index, (spec, shapes) in enumerate({
      "ij,jk->ik": [(2, 3), (3, 4)], "bij,bjk->bik": [(2, 2, 3), (2, 3, 4)], "ii->i": [(3, 3)], "ij->ji": [(2, 3)],
      "ijk->": [(2, 3, 2)], "i,j,k->ijk": [(2,), (3,), (2,)], "bhqd,bhkd->bhqk": [(1, 2, 3, 4), (1, 2, 5, 4)],
      "...i,...i->...": [(2, 3, 4), (2, 3, 4)], "ab,bc,cd->ad": [(2, 3), (3, 4), (4, 2)]}.items()):
    add(f"einsum_{index}", lambda *a, spec=spec: jnp.einsum(spec, *a), *[F(*s, seed=k) for k, s in enumerate(shapes)])


def convolutions():
  x, k = F(2, 3, 6, 5), F(4, 3, 3, 2, seed=1)
  add("conv_valid", lambda x, k: lax.conv(x, k, (1, 1), "VALID"), x, k)
  add("conv_same_stride", lambda x, k: lax.conv(x, k, (2, 2), "SAME"), x, k)
  add("conv_dilated", lambda x, k: lax.conv_general_dilated(x, k, (1, 1), ((1, 1), (2, 0)), (2, 1), (1, 2)), x, k)
  add("conv_nhwc", lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")), F(1, 5, 5, 2), F(3, 3, 2, 4, seed=1))
  add("conv_groups", lambda x, k: lax.conv_general_dilated(x, k, (1,), "VALID", feature_group_count=2), F(1, 4, 6), F(6, 2, 3, seed=1))
  add("conv_batch_groups", lambda x, k: lax.conv_general_dilated(x, k, (1,), "VALID", batch_group_count=2), F(4, 2, 6), F(6, 2, 3, seed=1))
  add("conv_transpose", lambda x, k: lax.conv_transpose(x, k, (2,), "SAME"), F(1, 5, 2), F(3, 2, 4, seed=1))
  add("conv_grad", jax.grad(lambda k, x: jnp.sum(lax.conv(x, k, (2, 1), "SAME") ** 2)), k, x)
  add("conv_1d_numpy", lambda a, v: jnp.convolve(a, v, mode="same"), F(7), F(3, seed=1))


def control_flow():
  add("control_while", lambda x: lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * 1.5), (np.int32(0), x)), F(3))
  add("control_fori", lambda x: lax.fori_loop(0, 6, lambda i, y: y + jnp.sin(y) * i, x), F(3))
  add("control_scan", lambda x, xs: lax.scan(lambda c, a: (jnp.tanh(c + a), c * a), x, xs), F(3), F(5, 3, seed=1))
  add("control_scan_reverse_unroll", lambda x, xs: lax.scan(lambda c, a: (c * a + 1.0, c), x, xs, reverse=True, unroll=2), F(3), F(5, 3, seed=1))
  add("control_scan_grad", jax.grad(lambda x, xs: jnp.sum(lax.scan(lambda c, a: (jnp.tanh(c * a), c), x, xs)[1])), F(3), F(5, 3, seed=1))
  add("control_map", lambda xs: lax.map(lambda a: jnp.sum(a * a), xs), F(4, 3))
  add("control_cond", lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x), np.bool_(True), F(3))
  add("control_switch", lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda y: y * 2], x), np.int32(5), F(3))
  add("control_associative_scan", lambda x: lax.associative_scan(jnp.multiply, x), F(7))
  add("control_nested_while", lambda x: lax.while_loop(lambda v: v < 100.0, lambda v: lax.fori_loop(0, 2, lambda i, u: u * 1.5 + 1.0, v), x), f32(1.0))
  add("control_vmapped_while", jax.vmap(lambda x: lax.while_loop(lambda v: v < 10.0, lambda v: v * 2.0 + 1.0, x)), P(4))
  add("control_vmapped_cond", jax.vmap(lambda x: lax.cond(x > 0, jnp.sin, jnp.exp, x)), F(5))
  add("control_custom_root", lambda a: lax.custom_root(lambda x: x * x - a, f32(1.0), lambda f, x0: lax.fori_loop(
      0, 20, lambda _, x: x - f(x) / (2.0 * x), x0), lambda g, y: y / g(1.0)), f32(2.0))


def linear_algebra():
  spd = np.array([[4, 1, 0.5], [1, 3, 0.25], [0.5, 0.25, 2]], f32)
  general = F(3, 3) + 3 * np.eye(3, dtype=f32)
  add("linalg_cholesky", jnp.linalg.cholesky, spd)
  add("linalg_triangular_solve", lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True), np.tril(general), F(3, 2, seed=1))
  add("linalg_solve", jnp.linalg.solve, general, F(3, 2, seed=1), tolerance=LOOSE)
  add("linalg_det_inv", lambda a: (jnp.linalg.det(a), jnp.linalg.inv(a)), general, tolerance=LOOSE)
  add("linalg_qr", lambda a: jnp.linalg.qr(a)[1], general, tolerance=LOOSE)
  add("linalg_eigh_values", lambda a: jnp.linalg.eigvalsh(a), spd, tolerance=LOOSE)
  add("linalg_svd_values", lambda a: jnp.linalg.svd(a, compute_uv=False), F(4, 3), tolerance=LOOSE)
  add("linalg_norm", lambda a: (jnp.linalg.norm(a), jnp.linalg.norm(a, ord=1)), F(3, 4))
  add("linalg_matrix_power", lambda a: jnp.linalg.matrix_power(a, 3), U(3, 3))
  add("linalg_lu_solve", lambda a, b: jsp.linalg.lu_solve(jsp.linalg.lu_factor(a), b), general, F(3, seed=1), tolerance=LOOSE)
  add("linalg_expm", jsp.linalg.expm, U(3, 3), tolerance=LOOSE)
  add("linalg_cholesky_grad", jax.grad(lambda a: jnp.sum(jnp.linalg.cholesky(a))), spd, tolerance=LOOSE)
  for name in ("fft", "ifft"):
    add(f"fft_{name}", getattr(jnp.fft, name), (F(8) + 1j * F(8, seed=1)).astype(np.complex64), tolerance=LOOSE)
  add("fft_rfft", jnp.fft.rfft, F(3, 8), tolerance=LOOSE)
  add("fft_irfft", lambda x: jnp.fft.irfft(x, 8), (F(5) + 1j * F(5, seed=1)).astype(np.complex64), tolerance=LOOSE)
  add("fft_fft2", jnp.fft.fft2, F(4, 6), tolerance=LOOSE)
  add("fft_odd_size", jnp.fft.fft, (F(7) + 0j).astype(np.complex64), tolerance=LOOSE)


def random_numbers():
  key = np.array([0, 42], np.uint32)
  wrap = lambda k: jax.random.wrap_key_data(k)
  add("random_bits", lambda k: jax.random.bits(wrap(k), (5,)), key)
  add("random_split", lambda k: jax.random.key_data(jax.random.split(wrap(k), 3)), key)
  add("random_fold_in", lambda k: jax.random.key_data(jax.random.fold_in(wrap(k), 9)), key)
  add("random_uniform", lambda k: jax.random.uniform(wrap(k), (3, 4)), key)
  add("random_normal", lambda k: jax.random.normal(wrap(k), (7,)), key)
  add("random_randint", lambda k: jax.random.randint(wrap(k), (6,), 0, 10), key)
  add("random_permutation", lambda k: jax.random.permutation(wrap(k), 9), key)
  add("random_categorical", lambda k, x: jax.random.categorical(wrap(k), x), key, F(3, 4))
  add("random_bernoulli", lambda k: jax.random.bernoulli(wrap(k), 0.3, (6,)), key)
  add("random_gumbel", lambda k: jax.random.gumbel(wrap(k), (6,)), key)
  add("random_key_argument", lambda s: jax.random.uniform(jax.random.key(s), (4,)), np.int32(7))


def networks():
  for name in "relu gelu silu softplus elu selu leaky_relu hard_tanh log_sigmoid swish mish celu".split():
    add(f"nn_{name}", getattr(jax.nn, name), F(3, 4))
  add("nn_softmax", lambda x: jax.nn.softmax(x, axis=-1), F(3, 4))
  add("nn_log_softmax", lambda x: jax.nn.log_softmax(x, axis=0), F(3, 4))
  add("nn_layer_norm", lambda x: (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5), F(3, 8))
  add("nn_attention", lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True), F(1, 4, 2, 3), F(1, 4, 2, 3, seed=1), F(1, 4, 2, 3, seed=2))
  def loss(params, x, y):
    h = jnp.tanh(x @ params[0] + params[1])
    return jnp.mean((h @ params[2] - y) ** 2)
  add("nn_mlp_value_and_grad", lambda a, b, c, x, y: jax.value_and_grad(loss)((a, b, c), x, y),
      F(3, 4), F(4, seed=1), F(4, 2, seed=2), F(5, 3, seed=3), F(5, 2, seed=4))


def transforms():
  add("transform_jit_calls", lambda x: layer(layer(layer(x))), F(4))
  add("transform_grad", jax.grad(lambda x: jnp.sum(jnp.sin(x) * jnp.exp(-x * x))), F(5))
  add("transform_hessian", jax.hessian(lambda x: jnp.sum(x ** 3) + jnp.prod(x)), P(3))
  add("transform_jvp", lambda x, t: jax.jvp(jnp.tanh, (x,), (t,)), F(4), F(4, seed=1))
  add("transform_vmap_grad", jax.vmap(jax.grad(lambda x: jnp.sum(jnp.logaddexp(x, 0.0)))), F(3, 4))
  add("transform_remat_grad", jax.grad(lambda x: jnp.sum(jax.checkpoint(lambda y: jnp.sin(jnp.sin(y)))(x))), F(4))
  add("transform_custom_jvp", jax.grad(lambda x: jnp.sum(jax.nn.relu(x) * x)), F(5))
  add("transform_collective", jax.vmap(lambda x: lax.psum(x, "i") + lax.axis_index("i") + lax.pmax(x, "i"), axis_name="i"), F(4, 2))
  add("structure_optimization_barrier", lambda x, y: lax.optimization_barrier((x + 1.0, y)), F(3), F(2))
  add("structure_constant_array", lambda x: x + np.arange(6, dtype=f32).reshape(2, 3) * np.array([[0.1, np.nan, np.inf]], f32), F(2, 3))
  add("structure_constant_splat", lambda x: x * np.full((40,), 1.25, f32), F(40))
  add("structure_many_outputs", lambda x: {"a": x, "b": (x + 1, [x * 2, 3.0])}, F(3))
  add("structure_unused_argument", lambda x, y: x * 2.0, F(3), F(3, seed=1))
  add("structure_named_scope", lambda x: jax.named_scope("block")(jnp.sin)(x), F(3))
  add("structure_composite", lambda x: lax.composite(lambda y, scale: jnp.tanh(y) * scale, "my.op", version=1)(x, scale=2), F(3))
  add("structure_bool_and_small_ints", lambda a, b: (a & ~a, b // np.int8(3), b % np.int8(5)), B(4), I(4, dtype=np.int8))
  add("structure_no_arguments", lambda: jnp.ones((2, 3)) * 4)


@jax.jit
def layer(x):
  return jnp.tanh(x) * 1.5


def numpy_functions():
  for name in "hypot arctan2 logaddexp heaviside copysign fmod floor_divide power maximum fmin gcd lcm".split():
    if name in ("gcd", "lcm"):
      add(f"numpy_{name}", getattr(jnp, name), I(5, low=1, high=40), I(5, seed=3, low=1, high=40))
    else:
      add(f"numpy_{name}", getattr(jnp, name), P(5), P(5, seed=1))
  for name in "sinc nan_to_num rint trunc reciprocal deg2rad signbit isnan positive fabs log2 log10 cbrt".split():
    add(f"numpy_{name}", getattr(jnp, name), P(3, 4) if name in ("log2", "log10") else F(3, 4))
  add("numpy_clip_where", lambda x: jnp.where(x > 0.5, jnp.clip(x, -1, 1), x ** 2), F(6))
  add("numpy_interp", lambda x, xp, fp: jnp.interp(x, xp, fp), F(5), np.linspace(-2, 2, 6, dtype=f32), F(6, seed=2))
  add("numpy_polyval", lambda p, x: jnp.polyval(p, x), F(4), F(5, seed=1))
  add("numpy_divmod", lambda a, b: jnp.divmod(a, b), I(7), np.array([2, -3, 5, 4, -2, 3, 7], np.int32))
  add("numpy_frexp_ldexp", lambda x: jnp.ldexp(*jnp.frexp(x)), F(6))
  add("numpy_histogram", lambda x: jnp.histogram(x, bins=4, range=(-2.0, 2.0))[0], F(12))
  add("numpy_cross", jnp.cross, F(2, 3), F(2, 3, seed=1))
  add("numpy_trapezoid", lambda y: jnp.trapezoid(y, dx=0.5), F(6))
  add("numpy_corrcoef", lambda x: jnp.corrcoef(x), F(3, 6), tolerance=LOOSE)
  add("numpy_select_piecewise", lambda x: jnp.select([x < 0, x > 1], [x * 2, x - 1], 0.0), F(6))
  add("numpy_vander", lambda x: jnp.vander(x, 3), F(4))
  add("numpy_count_nonzero", lambda x: jnp.count_nonzero(x > 0, axis=0), F(3, 4))


for family in (elementwise, special, compare_and_bits, types, reductions, windows, sorting, shape_operations, indexing,
               contractions, convolutions, control_flow, linear_algebra, random_numbers, networks, transforms, numpy_functions):
  family()
