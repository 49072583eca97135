"""The bodies of the transform programs: each has a C++ twin of the same name in tests/transforms/programs_test.cpp.

A body is f(x, w) -> one array, written with jax.lax and the operators + - * / between arrays of one shape or with scalars.
BODIES maps its name to (function, x, w, flags). x and w are numpy arrays whose shapes and dtypes are in the comment
above each body. Functions passed to jit, custom_jvp and custom_vjp have the short names g, h, h_jvp, h_fwd, h_bwd, which
appear in the jaxpr text. Constants are numpy arrays of rank > 0 (constvars in a jaxpr) or Python scalars (literals).
flags: 'values_only' where the jaxpr text holds Python objects or internals that are not compared.
"""
import jax
import ml_dtypes
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name

f32 = np.float32
BODIES = {}


def numbers(shape, seed, dtype=f32):
  """Distinct numbers of both signs, exact in float32, the same on every machine."""
  size = int(np.prod(shape))
  k = np.arange(size)
  return (((k * 37 + seed * 11) % 64 - 31) / 32.0).astype(dtype).reshape(shape)


def body(x, w, flags=""):
  def register(f):
    BODIES[f.__name__] = (f, np.asarray(x), np.asarray(w), flags)
    return f
  return register


def total(y):
  return lax.reduce_sum(y, axes=tuple(range(y.ndim)))


# x f32[4], w f32[4]
@body(numbers((4,), 1), numbers((4,), 2))
def elementwise(x, w):
  return lax.sin(x) * w + lax.exp(x) / (w * w + 1.0)


# x f32[2,3], w f32[3,3]
@body(numbers((2, 3), 1), numbers((3, 3), 2))
def mlp(x, w):
  h = lax.tanh(lax.dot(x, w))
  return lax.logistic(lax.dot(h, w))


# x f32[3], w f32[5,3]
@body(numbers((3,), 1), numbers((5, 3), 2))
def scan_carry(x, w):
  def step(carry, a):
    return lax.sin(carry) * a + carry, None
  carry, _ = lax.scan(step, x, w)
  return carry


# x f32[3], w f32[5,3]: reverse, stacked outputs, x also captured as a constant of the loop
@body(numbers((3,), 1), numbers((5, 3), 2))
def scan_reverse(x, w):
  def step(carry, a):
    new = carry * lax.cos(a) + lax.exp(x)
    return new, new * a
  _, ys = lax.scan(step, x, w, reverse=True)
  return ys


# x f32[2], w f32[3,2]: the inner loop runs over w again
@body(numbers((2,), 1), numbers((3, 2), 2))
def scan_nested(x, w):
  def inner(carry, a):
    return carry * a + 0.5, carry
  def outer(carry, a):
    new, ys = lax.scan(inner, carry * a, w)
    return lax.sin(new), total(ys)
  _, sums = lax.scan(outer, x, w)
  return sums


# x f32[3], w f32[3]; while with a counter: reverse mode is an error
@body(numbers((3,), 1), numbers((3,), 2))
def while_loop(x, w):
  def cond(state):
    i, _ = state
    return i < 3
  def step(state):
    i, y = state
    return i + 1, lax.sin(y) * w + y
  _, y = lax.while_loop(cond, step, (np.int32(0), x))
  return y


# x f32[3], w f32[3]
@body(numbers((3,), 1), numbers((3,), 2))
def fori_loop(x, w):
  return lax.fori_loop(0, 4, lambda i, y: lax.cos(y) * w, x)


# x f32[3], w f32[3]
@body(numbers((3,), 1), numbers((3,), 2))
def cond(x, w):
  return lax.cond(total(x) > 0.0, lambda a, b: lax.sin(a) * b, lambda a, b: a + lax.exp(b), x, w)


# x f32[3], w f32[3]; the index is outside 0..2 for one member of the batch
@body(numbers((3,), 1), numbers((3,), 2))
def switch(x, w):
  index = lax.convert_element_type(total(x) * 2.0, np.int32)
  return lax.switch(index, [lambda a, b: a * b, lambda a, b: lax.tanh(a) + b, lambda a, b: b * 3.0], x, w)


# x f32[5], w f32[5]
@body(numbers((5,), 1), numbers((5,), 2))
def sort_pairs(x, w):
  keys, values = lax.sort((x, w), dimension=0, num_keys=1)
  return keys * values


# x f32[5], w f32[3]; indices i32[3,1], one repeated, one out of bounds
@body(numbers((5,), 1), numbers((3,), 2))
def scatter_add(x, w):
  indices = np.array([[1], [1], [7]], np.int32)
  numbers_ = lax.ScatterDimensionNumbers(
      update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
  return lax.scatter_add(lax.sin(x), indices, w * w, numbers_, mode=lax.GatherScatterMode.FILL_OR_DROP)


# x f32[4,3], w f32[2,3]; indices i32[2,1]
@body(numbers((4, 3), 1), numbers((2, 3), 2))
def gather(x, w):
  indices = np.array([[2], [0]], np.int32)
  numbers_ = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
  return lax.gather(x, indices, numbers_, (1, 3), mode=lax.GatherScatterMode.CLIP) * w


# x f32[1,2,5,5], w f32[3,2,3,3]
@body(numbers((1, 2, 5, 5), 1), numbers((3, 2, 3, 3), 2))
def convolution(x, w):
  return lax.conv_general_dilated(x, w, window_strides=(2, 1), padding=((1, 1), (0, 1)))


# x f32[3,3], w f32[3,2]; the numpy identity is a constant of the program
@body(numbers((3, 3), 1), numbers((3, 2), 2))
def cholesky_solve(x, w):
  matrix = lax.dot(x, lax.transpose(x, (1, 0))) + 3.0 * np.eye(3, dtype=f32)
  factor = lax.linalg.cholesky(matrix, symmetrize_input=False)
  return lax.linalg.triangular_solve(factor, w, left_side=True, lower=True)


@jax.custom_vjp
def h_vjp(x, w):
  return lax.sin(x) * w


def h_fwd(x, w):
  return h_vjp(x, w), (x, w)


def h_bwd(residuals, g):
  x, w = residuals
  return g * w * 2.0, g * x


h_vjp.defvjp(h_fwd, h_bwd)


# x f32[3], w f32[3]: h_vjp(x, w) = sin(x) * w, fwd saves (x, w), bwd(g) = (g * w * 2.0, g * x)
@body(numbers((3,), 1), numbers((3,), 2))
def custom_vjp(x, w):
  return h_vjp(lax.exp(x), w)


@jax.custom_jvp
def h(x, w):
  return lax.sin(x) * w


@h.defjvp
def h_jvp(primals, tangents):
  x, w = primals
  dx, dw = tangents
  return h(x, w), dx * w * 3.0 + dw * x


# x f32[3], w f32[3]: h(x, w) = sin(x) * w with the rule (h(x, w), dx * w * 3.0 + dw * x)
@body(numbers((3,), 1), numbers((3,), 2))
def custom_jvp(x, w):
  return h(lax.exp(x), w)


# x f32[3], w f32[3]
@body(numbers((3,), 1), numbers((3,), 2))
def remat(x, w):
  def f(x, w):
    return lax.sin(lax.sin(x) * w)
  return jax.checkpoint(f)(x, w) * w


# x f32[2,3], w f32[3,3]: policy dots_saveable
@body(numbers((2, 3), 1), numbers((3, 3), 2))
def remat_dots(x, w):
  def f(x, w):
    return lax.sin(lax.dot(lax.sin(lax.dot(x, w)), w))
  return jax.checkpoint(f, policy=jax.checkpoint_policies.dots_saveable)(x, w)


# x f32[3], w f32[3]: policy save_only_these_names('kept')
@body(numbers((3,), 1), numbers((3,), 2))
def remat_names(x, w):
  def f(x, w):
    return lax.cos(checkpoint_name(lax.exp(x) * w, "kept")) * lax.sin(w)
  return jax.checkpoint(f, policy=jax.checkpoint_policies.save_only_these_names("kept"))(x, w)


# x f32[3], w f32[3]: a mutable array written twice
@body(numbers((3,), 1), numbers((3,), 2))
def ref(x, w):
  cell = jax.new_ref(x)
  cell[...] = lax.sin(cell[...]) * w
  cell[...] = cell[...] * cell[...]
  return cell[...] + x


# x f32[3], w f32[3]: the callback doubles its argument on the host; differentiation is an error
@body(numbers((3,), 1), numbers((3,), 2))
def callback(x, w):
  doubled = jax.pure_callback(lambda a: np.asarray(a) * f32(2), jax.ShapeDtypeStruct(x.shape, f32), x,
                              vmap_method="expand_dims")
  return doubled * w


# x f32[5,2], w f32[5,2]
@body(numbers((5, 2), 1), numbers((5, 2), 2))
def associative_scan(x, w):
  return lax.associative_scan(lax.mul, x * w + 1.0, axis=0)


# x f32[5], w f32[5]
@body(numbers((5,), 1), numbers((5,), 2))
def cumulative(x, w):
  return lax.cumsum(x, axis=0) * lax.cummax(w, axis=0, reverse=True) + lax.cumprod(x, axis=0)


# x f32[5], w f32[4]; one start index is too large and is clamped
@body(numbers((5,), 1), numbers((4,), 2))
def dynamic_slices(x, w):
  piece = lax.dynamic_slice(w, (np.int32(9),), (2,))
  return lax.dynamic_update_slice(lax.sin(x), piece * piece, (np.int32(1),))


# x f32[2,4] with ties in both rows, w f32[2]
@body(np.array([[1, 3, 3, 0], [2, 2, 2, -1]], f32), numbers((2,), 2))
def reduce_max_ties(x, w):
  return lax.reduce_max(x, axes=(1,)) * w


# x f32[3], w f32[3]: one jitted function called twice
@body(numbers((3,), 1), numbers((3,), 2))
def nested_jit(x, w):
  return g(g(x, w), w)


@jax.jit
def g(x, w):
  return lax.sin(x) * w


# x f32[4], w f32[4]
@body(numbers((4,), 1), numbers((4,), 2))
def selection(x, w):
  picked = lax.select(x > w, x * w, lax.max(x, w))
  return lax.clamp(-0.25, picked, 0.5) + lax.min(x, 0.0) + lax.abs(w)


# x f32[1,4,4,1], w f32[1,2,2,1]: max pooling, window 2 x 2, stride 2
@body(numbers((1, 4, 4, 1), 1), numbers((1, 2, 2, 1), 2))
def max_pool(x, w):
  return lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") * w


# x f32[2,5], w f32[2,2]
@body(numbers((2, 5), 1), numbers((2, 2), 2))
def top_two(x, w):
  values, _ = lax.top_k(x, 2)
  return values * w


# x f32[2,3,4], w f32[2,4,3]: batch dimension 0, contraction of 4, then shape operations
@body(numbers((2, 3, 4), 1), numbers((2, 4, 3), 2))
def shapes(x, w):
  product = lax.dot_general(x, w, (((2,), (1,)), ((0,), (0,))))
  flat = lax.reshape(lax.transpose(product, (0, 2, 1)), (6, 3))
  padded = lax.pad(lax.rev(flat, (1,)), 0.0, ((0, 0, 0), (1, -1, 1)))
  return lax.concatenate([lax.slice(padded, (0, 0), (6, 4), (2, 1)), lax.expand_dims(padded[0, :4], (0,))], 0)


# x f32[4], w f32[4]
@body(numbers((4,), 1), numbers((4,), 2))
def fourier(x, w):
  return lax.real(lax.fft(lax.complex(x, w), lax.FftType.FFT, (4,))) * w


# x bf16[4], w bf16[4]: sums in float32 inside
@body(numbers((4,), 1, ml_dtypes.bfloat16), numbers((4,), 2, ml_dtypes.bfloat16))
def bfloat16_cast(x, w):
  wide = lax.convert_element_type(x, f32) * 2.0
  return lax.convert_element_type(lax.sin(wide), jax.numpy.bfloat16) * w


# x f32[3], w f32[3]: solves (w*w + 1) y = x by division, with implicit derivative
@body(numbers((3,), 1), numbers((3,), 2), "values_only")
def linear_solve(x, w):
  diagonal = w * w + 1.0
  return lax.custom_linear_solve(lambda v: diagonal * v, x, lambda _, b: b / diagonal, symmetric=True)
