"""Functions of every family of lax with their arguments, written once for jax and capibara, for files of exported programs."""
import ml_dtypes
import numpy as np

KEY = object()  # placeholder for a key of the library under test
_draw = np.random.default_rng(0)


def _floats(*shape, low=-2.0, high=2.0, dtype=np.float32):
  return _draw.uniform(low, high, shape).astype(dtype)


def _ints(*shape, low=-9, high=9, dtype=np.int32):
  return _draw.integers(low, high, shape).astype(dtype)


X, Y = _floats(3, 4), _floats(3, 4)
POSITIVE, UNIT, ABOVE = _floats(3, 4, low=0.2, high=3), _floats(3, 4, low=-0.9, high=0.9), _floats(3, 4, low=1.1, high=4)
A, B, V = _floats(4, 5), _floats(5, 3), _floats(5)
I, J = _ints(3, 4), _ints(3, 4, low=1)
U = _ints(3, 4, low=0, high=200, dtype=np.uint32)
BOOLEANS = X > 0
Z = (X + 1j * Y).astype(np.complex64)
SQUARE = (np.eye(4) * 5 + _floats(4, 4)).astype(np.float32)
SYMMETRIC = (SQUARE + SQUARE.T).astype(np.float32)
DEFINITE = (SQUARE @ SQUARE.T + np.eye(4)).astype(np.float32)
IMAGE, KERNEL = _floats(2, 6, 6, 3), _floats(3, 3, 3, 4)
TABLE, ROWS = _floats(6, 3), _ints(4, low=0, high=6)

FUNCTIONS = {}  # by name: a function of the library that returns the function, and its arguments


def case(name, *args):
  def add(builder):
    FUNCTIONS[name] = (builder, args)
    return builder
  return add


def _add(name, builder, *args):
  FUNCTIONS[name] = (builder, args)


# ---- elementwise -----------------------------------------------------------------------------------------------------

for name in ("abs", "ceil", "cos", "exp", "exp2", "expm1", "floor", "is_finite", "logistic", "neg", "round", "sign", "sin", "sinh",
             "square", "tan", "tanh", "cosh", "asinh", "atan", "erf", "erfc", "cbrt", "bessel_i0e", "bessel_i1e", "integer_pow"):
  if name == "integer_pow":
    _add(name, lambda jax: lambda x: jax.lax.integer_pow(x, 3), X)
  else:
    _add(name, lambda jax, name=name: getattr(jax.lax, name), X)
for name in ("log", "log1p", "rsqrt", "sqrt", "lgamma", "digamma", "reciprocal"):
  _add(name, lambda jax, name=name: getattr(jax.lax, name), POSITIVE)
for name in ("acos", "asin", "atanh", "erf_inv"):
  _add(name, lambda jax, name=name: getattr(jax.lax, name), UNIT)
_add("acosh", lambda jax: jax.lax.acosh, ABOVE)
for name in ("add", "sub", "mul", "div", "max", "min", "rem", "atan2", "nextafter", "eq", "ne", "lt", "le", "gt", "ge"):
  _add(name, lambda jax, name=name: getattr(jax.lax, name), X, Y)
_add("pow", lambda jax: jax.lax.pow, POSITIVE, Y)
_add("igamma", lambda jax: jax.lax.igamma, POSITIVE, ABOVE)
_add("zeta", lambda jax: jax.lax.zeta, ABOVE, POSITIVE)
_add("polygamma", lambda jax: lambda x: jax.lax.polygamma(jax.numpy.ones_like(x), x), POSITIVE)
for name in ("add", "sub", "mul", "div", "max", "rem", "bitwise_and", "bitwise_or", "bitwise_xor", "lt", "eq"):
  _add(f"{name} of integers", lambda jax, name=name: getattr(jax.lax, name), I, J)
for name in ("shift_left", "shift_right_logical", "shift_right_arithmetic"):
  _add(name, lambda jax, name=name: lambda x: getattr(jax.lax, name)(x, jax.numpy.full_like(x, 2)), I)
for name in ("clz", "population_count", "bitwise_not"):
  _add(name, lambda jax, name=name: getattr(jax.lax, name), U)
_add("bitwise_not of booleans", lambda jax: jax.lax.bitwise_not, BOOLEANS)
for name in ("real", "imag", "conj", "abs", "exp", "sqrt", "sin", "tanh", "asin", "log"):
  _add(f"{name} of complex numbers", lambda jax, name=name: getattr(jax.lax, name), Z)
_add("complex", lambda jax: jax.lax.complex, X, Y)
_add("clamp", lambda jax: lambda x: jax.lax.clamp(np.float32(-1), x, np.float32(1)), X)
_add("select", lambda jax: jax.numpy.where, BOOLEANS, X, Y)
_add("select_n of integers", lambda jax: lambda i, x, y: jax.lax.select_n(i, x, y, x * y), I % 3, X, Y)
_add("convert_element_type", lambda jax: lambda x: (x.astype("int32"), x.astype("bfloat16"), x.astype("bool")), X)
_add("bitcast_convert_type", lambda jax: lambda x: jax.lax.bitcast_convert_type(x, np.uint32), X)
_add("bitcast to bytes", lambda jax: lambda x: jax.lax.bitcast_convert_type(x, np.uint8), X)
_add("reduce_precision", lambda jax: lambda x: jax.lax.reduce_precision(x, 5, 7), X)
_add("optimization_barrier", lambda jax: lambda x, y: jax.lax.optimization_barrier((x, y)), X, Y)

# ---- shapes ----------------------------------------------------------------------------------------------------------

_add("reshape", lambda jax: lambda x: x.reshape(2, 6), X)
_add("transpose", lambda jax: lambda x: x.T, X)
_add("broadcast_in_dim", lambda jax: lambda x: jax.lax.broadcast_in_dim(x, (2, 3, 4), (1, 2)), X)
_add("concatenate", lambda jax: lambda x, y: jax.lax.concatenate([x, y, x], 1), X, Y)
_add("pad", lambda jax: lambda x: jax.lax.pad(x, np.float32(7), [(1, 2, 0), (-1, 0, 1)]), X)
_add("slice", lambda jax: lambda x: jax.lax.slice(x, (0, 1), (3, 4), (2, 1)), X)
_add("dynamic_slice", lambda jax: lambda x, i: jax.lax.dynamic_slice(x, (i, i), (2, 2)), X, np.int32(1))
_add("dynamic_update_slice", lambda jax: lambda x, y, i: jax.lax.dynamic_update_slice(x, y[:2, :2], (i, i)), X, Y, np.int32(1))
_add("rev", lambda jax: lambda x: jax.lax.rev(x, (0, 1)), X)
_add("iota", lambda jax: lambda x: jax.lax.broadcasted_iota(np.int32, (3, 4), 1) + x.astype("int32"), X)
_add("squeeze", lambda jax: lambda x: jax.lax.squeeze(x[None], (0,)), X)
_add("a constant of 100 numbers", lambda jax: lambda x: x[0, 0] + np.arange(100, dtype=np.float32), X)
_add("an empty array", lambda jax: lambda x: (x[:0], x.sum()), X)
_add("a scalar", lambda jax: lambda x: x * 2 + 1, np.float32(3))
_add("booleans as a constant", lambda jax: lambda x: x[0, 0] * np.array([1, 0, 1, 1, 0, 1, 0, 1, 1, 0], bool), X)

# ---- reductions, orders, gathers ---------------------------------------------------------------------------------------

for name in ("sum", "prod", "max", "min", "argmax", "argmin", "any", "all", "cumsum", "cumprod", "mean", "var", "ptp"):
  _add(f"{name} along an axis", lambda jax, name=name: lambda x: getattr(jax.numpy, name)(x, axis=1), X)
for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"):
  _add(f"reversed {name}", lambda jax, name=name: lambda x: getattr(jax.lax, name)(x, axis=0, reverse=True), X)
_add("logsumexp", lambda jax: lambda x: jax.nn.logsumexp(x, axis=-1), X)
_add("reduce of pairs", lambda jax: lambda x, y: jax.lax.reduce((x, y), (np.float32(0), np.float32(1)),
                                                             lambda a, b: (a[0] + b[0], a[1] * b[1]), (0,)), X, Y)
_add("reduce_and of integers", lambda jax: lambda x: jax.lax.reduce_and(x, (0,)), U)
_add("reduce_window", lambda jax: lambda x: jax.lax.reduce_window(x, np.float32(0), jax.lax.add, (2, 2), (1, 2), [(1, 0), (0, 1)]), X)
_add("max pooling and its derivative", lambda jax: lambda x: jax.grad(lambda x: (jax.lax.reduce_window(
    x, -np.float32(np.inf), jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") ** 2).sum())(x), IMAGE)
_add("sort", lambda jax: lambda x: jax.numpy.sort(x, axis=0), X)
_add("argsort", lambda jax: lambda x: jax.numpy.argsort(x, axis=1), X)
_add("sort of two", lambda jax: lambda i, x: jax.lax.sort((i, x), num_keys=2, dimension=1), I % 3, X)
_add("top_k", lambda jax: lambda x: jax.lax.top_k(x, 2), X)
_add("approx_max_k", lambda jax: lambda x: jax.lax.approx_max_k(x, 2), X)
_add("searchsorted", lambda jax: lambda x, y: jax.numpy.searchsorted(jax.numpy.sort(x.ravel()), y), X, Y)
_add("gather", lambda jax: lambda table, rows: table[rows], TABLE, ROWS)
_add("gather with negative numbers", lambda jax: lambda table, rows: table[-rows - 1, 1], TABLE, ROWS)
_add("gather of batches", lambda jax: jax.vmap(lambda x, i: x[i]), X, I % 4)
_add("take_along_axis", lambda jax: lambda x, i: jax.numpy.take_along_axis(x, i, axis=1), X, I % 4)
_add("scatter", lambda jax: lambda table, rows: table.at[rows].set(1.5), TABLE, ROWS)
_add("scatter_add", lambda jax: lambda table, rows, x: table.at[rows].add(x[:, :1]), TABLE, ROWS, _floats(4, 4))
_add("scatter_mul", lambda jax: lambda table, rows: table.at[rows].multiply(2), TABLE, ROWS)
_add("scatter_min", lambda jax: lambda table, rows: table.at[rows, 0].min(0), TABLE, ROWS)
_add("scatter_max", lambda jax: lambda table, rows: table.at[rows, 0].max(0), TABLE, ROWS)
_add("segment_sum", lambda jax: lambda x, rows: jax.ops.segment_sum(x, rows, 6), _floats(4, 2), ROWS)
_add("one_hot", lambda jax: lambda rows: jax.nn.one_hot(rows, 6), ROWS)

# ---- products ----------------------------------------------------------------------------------------------------------

_add("matmul", lambda jax: lambda a, b: a @ b, A, B)
_add("matmul of highest precision", lambda jax: lambda a, b: jax.numpy.matmul(a, b, precision="highest"), A, B)
_add("matmul of bfloat16 into float32", lambda jax: lambda a, b: jax.numpy.matmul(
    a.astype("bfloat16"), b.astype("bfloat16"), preferred_element_type=np.float32), A, B)
_add("batched products", lambda jax: lambda x: jax.numpy.einsum("bij,bkj->bik", x, x * 2), _floats(2, 3, 4))
_add("outer product", lambda jax: lambda v: jax.numpy.outer(v, v), V)
_add("integer product", lambda jax: lambda i, j: i @ j.T, I, J)
_add("complex product", lambda jax: lambda z: z @ z.T, Z)
_add("dot with an algorithm", lambda jax: lambda a, b: jax.lax.dot(a, b, precision="F32_F32_F32"), A, B)
_add("convolution", lambda jax: lambda x, k: jax.lax.conv_general_dilated(
    x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")), IMAGE, KERNEL)
_add("strided convolution", lambda jax: lambda x, k: jax.lax.conv_general_dilated(
    x, k, (2, 1), [(1, 1), (0, 2)], rhs_dilation=(1, 2), dimension_numbers=("NHWC", "HWIO", "NHWC")), IMAGE, KERNEL)
_add("grouped convolution", lambda jax: lambda x, k: jax.lax.conv_general_dilated(
    x, k[:, :, :1, :3], (1, 1), "VALID", feature_group_count=3, dimension_numbers=("NHWC", "HWIO", "NHWC")), IMAGE, KERNEL)
_add("derivative of a convolution", lambda jax: jax.grad(lambda x, k: (jax.lax.conv_general_dilated(
    x, k, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) ** 2).sum(), (0, 1)), IMAGE, KERNEL)
_add("transposed convolution", lambda jax: lambda x, k: jax.lax.conv_transpose(x, k, (2, 2), "SAME"), IMAGE, KERNEL)

# ---- linear algebra, Fourier transforms, random numbers ---------------------------------------------------------------

_add("cholesky", lambda jax: jax.numpy.linalg.cholesky, DEFINITE)
_add("triangular_solve", lambda jax: lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True), SQUARE, SQUARE[:, :2])
_add("solve", lambda jax: lambda a, b: jax.numpy.linalg.solve(a, b), SQUARE, SQUARE[:, :2])
_add("qr", lambda jax: lambda a: tuple(jax.numpy.linalg.qr(a)), A)
_add("lu", lambda jax: jax.scipy.linalg.lu, SQUARE)
_add("eigh", lambda jax: lambda a: tuple(jax.numpy.linalg.eigh(a)), SYMMETRIC)
_add("eigenvalues", lambda jax: lambda a: jax.numpy.sort(jax.numpy.abs(jax.numpy.linalg.eigvals(a))), SQUARE)
_add("svd", lambda jax: lambda a: tuple(jax.numpy.linalg.svd(a, full_matrices=False)), A)
_add("det", lambda jax: jax.numpy.linalg.det, SQUARE)
_add("inverse", lambda jax: jax.numpy.linalg.inv, SQUARE)
_add("batched cholesky", lambda jax: jax.numpy.linalg.cholesky, np.stack([DEFINITE, DEFINITE * 2]))
_add("expm", lambda jax: jax.scipy.linalg.expm, (SQUARE / 10).astype(np.float32))
for name in ("fft", "ifft"):
  _add(name, lambda jax, name=name: getattr(jax.numpy.fft, name), Z)
_add("rfft", lambda jax: jax.numpy.fft.rfft, X)
_add("irfft", lambda jax: lambda z: jax.numpy.fft.irfft(z, 6), Z)
_add("fft2", lambda jax: jax.numpy.fft.fft2, Z)
for name in ("normal", "uniform", "bits", "exponential", "gumbel"):
  _add(f"random {name}", lambda jax, name=name: lambda key: getattr(jax.random, name)(key, (5,)), KEY)
_add("random permutation", lambda jax: lambda key: jax.random.permutation(key, 9), KEY)
_add("random categorical", lambda jax: lambda key, x: jax.random.categorical(key, x), KEY, X)
_add("split keys as results", lambda jax: lambda key: jax.random.split(key, 3), KEY)
_add("fold_in", lambda jax: lambda key, i: jax.random.fold_in(key, i), KEY, np.int32(5))
_add("rng_bit_generator", lambda jax: lambda words: jax.lax.rng_bit_generator(words, (4,), np.uint32)[1] & 0, U[0])

# ---- control, calls, custom rules --------------------------------------------------------------------------------------

_add("scan", lambda jax: lambda x, xs: jax.lax.scan(lambda c, v: (c * 0.5 + v, (c, v * 2)), x, xs), X[0], Y)
_add("reversed scan", lambda jax: lambda x, xs: jax.lax.scan(lambda c, v: (c + v, c), x, xs, reverse=True), X[0], Y)
_add("derivative of a scan", lambda jax: jax.grad(lambda x, xs: jax.lax.scan(
    lambda c, v: (jax.numpy.tanh(c * v), c), x, xs)[0].sum(), (0, 1)), X[0], Y)
_add("while_loop", lambda jax: lambda x: jax.lax.while_loop(lambda s: s[1] < 10, lambda s: (s[0] * 1.5, s[1] + 1), (x, 0)), X)
_add("while_loop that reads a value from outside", lambda jax: lambda x, y: jax.lax.while_loop(
    lambda s: (s < y.max() * 3).all(), lambda s: s + abs(y) + 1, x), X, Y)
_add("fori_loop", lambda jax: lambda x: jax.lax.fori_loop(0, 5, lambda i, s: s + i * x, x), X)
_add("cond", lambda jax: lambda p, x, y: jax.lax.cond(p, lambda: x + y, lambda: x * y), np.bool_(True), X, Y)
_add("switch", lambda jax: lambda i, x: jax.lax.switch(i, [lambda x: x, lambda x: x * 2, lambda x: x.sum() + x], x), np.int32(1), X)
_add("switch beyond its branches", lambda jax: lambda i, x: jax.lax.switch(i, [lambda x: x, lambda x: -x], x), np.int32(7), X)
_add("nested loops", lambda jax: lambda x: jax.lax.fori_loop(0, 3, lambda i, s: jax.lax.fori_loop(
    0, i, lambda k, t: t * 1.1 + k, s), x), X)
_add("associative_scan", lambda jax: lambda x: jax.lax.associative_scan(jax.numpy.multiply, x), _floats(7))
_add("map", lambda jax: lambda x: jax.lax.map(lambda row: row.sum() * row, x), X)
_add("nested jit", lambda jax: lambda x, y: jax.jit(lambda a: jax.jit(lambda b: b * b)(a) + a)(x) + jax.jit(lambda b: b * b)(y), X, Y)
_add("checkpoint", lambda jax: jax.grad(lambda x: jax.checkpoint(lambda v: jax.numpy.sin(jax.numpy.sin(v)))(x).sum()), X)
_add("vmap of a function with loops", lambda jax: jax.vmap(lambda r: jax.lax.fori_loop(0, 4, lambda i, s: s * r, r)), X)
_add("derivatives of high order", lambda jax: jax.grad(jax.grad(jax.grad(lambda x: jax.numpy.sin(x) * x ** 3))), np.float32(0.7))
_add("hessian", lambda jax: jax.hessian(lambda v: (jax.numpy.tanh(v) @ v) ** 2), V)
_add("jvp", lambda jax: lambda x, y: jax.jvp(lambda v: jax.numpy.exp(v) * v, (x,), (y,)), X, Y)


@case("custom_jvp", X)
def _(jax):
  @jax.custom_jvp
  def f(x):
    return jax.numpy.log1p(jax.numpy.exp(x))

  @f.defjvp
  def _(primals, tangents):
    return f(primals[0]), tangents[0] * jax.nn.sigmoid(primals[0])
  return lambda x: (f(x), jax.grad(lambda v: f(v).sum())(x))


@case("custom_vjp", X)
def _(jax):
  @jax.custom_vjp
  def f(x):
    return x * x
  f.defvjp(lambda x: (f(x), x), lambda x, g: (g * 3 * x,))
  return lambda x: (f(x), jax.grad(lambda v: f(v).sum())(x))


# ---- element types -----------------------------------------------------------------------------------------------------

for dtype in ("bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz"):
  kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
  _add(f"a sum of {dtype}", lambda jax: lambda x: (x.astype("float32") + 1).astype(x.dtype), X.astype(kind))
  _add(f"a constant of {dtype}", lambda jax, kind=kind: lambda x: x * np.array([1, 2, 0.5, -3], kind).astype(np.float32), X)
for dtype in ("int4", "uint4"):
  kind = np.dtype(getattr(ml_dtypes, dtype))
  _add(f"{dtype}", lambda jax: lambda x: x.astype("int32") * 2, (np.arange(12).reshape(3, 4) % 8).astype(kind))
  _add(f"a constant of {dtype}", lambda jax, kind=kind: lambda x: x + np.array([1, 7, 0, 3], kind).astype(np.int32), I)
for dtype in (np.int8, np.int16, np.uint8, np.uint16):
  _add(f"{np.dtype(dtype)}", lambda jax: lambda x: x * x + 1, I.astype(dtype))

# ---- models ------------------------------------------------------------------------------------------------------------


def _layer(jax, w, x):
  return jax.numpy.tanh(x @ w["w"] + w["b"])


PARAMS = {"first": {"b": _floats(8), "w": _floats(4, 8)}, "second": {"b": _floats(2), "w": _floats(8, 2)}}


@case("a training step", PARAMS, _floats(5, 4), _floats(5, 2))
def _(jax):
  def loss(params, x, y):
    return ((_layer(jax, params["second"], _layer(jax, params["first"], x)) - y) ** 2).mean()

  def step(params, x, y):
    value, slopes = jax.value_and_grad(loss)(params, x, y)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, slopes)
  return step


@case("attention", _floats(2, 5, 2, 4), _floats(2, 5, 2, 4), _floats(2, 5, 2, 4))
def _(jax):
  return lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True)


@case("a decode step", _floats(8), _floats(6, 8), np.int32(3))
def _(jax):
  def step(x, cache, at):
    cache = jax.lax.dynamic_update_slice(cache, x[None], (at, 0))
    weights = jax.nn.softmax(jax.numpy.where(jax.numpy.arange(6) <= at, cache @ x, -jax.numpy.inf))
    return weights @ cache, cache, at + 1
  return step


_add("softmax", lambda jax: jax.nn.softmax, X)
_add("gelu", lambda jax: lambda x: jax.nn.gelu(x, approximate=False), X)
_add("layer norm", lambda jax: lambda x: jax.nn.standardize(x, axis=-1), X)
_add("a tree of every kind", lambda jax: lambda t: {"a": [t["x"] * 2, (t["y"][0],)], "n": None}, {"x": X, "y": [Y, None]})
