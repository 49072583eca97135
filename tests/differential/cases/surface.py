"""Names that are no library functions: dtypes, constants, primitives, enumerations, keys, errors, programs as data."""

import importlib
import os
import tempfile
from functools import partial

from makers import *

X = np.array([0.5, -1.0, 2.0], np.float32)


def module(jax, name):
    return importlib.import_module(f"{jax.__name__}.{name}")


def managed(manager, f):
    with manager:
        return f()


# --- dtypes and constants --------------------------------------------------------------------------------------------

SCALAR_TYPES = ["bfloat16", "bool_", "complex128", "complex64", "double", "float16", "float32", "float64", "float8_e4m3fn", "float8_e5m2",
                "int16", "int32", "int4", "int64", "int8", "int_", "single", "uint", "uint16", "uint32", "uint4", "uint64", "uint8", "float_",
                "complex_", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
                "float4_e2m1fn", "int2", "uint2"]
KINDS = ["complexfloating", "floating", "generic", "inexact", "integer", "number", "signedinteger", "unsignedinteger"]
DTYPES = [check(f"numpy.{name}: dtype and call", lambda jax, n=name: [np.dtype(getattr(jax.numpy, n)).name, jax.numpy.asarray(getattr(jax.numpy, n)(1))])
          for name in SCALAR_TYPES]
DTYPES += [check(f"numpy.{name}: as a dtype argument", lambda jax, n=name: jax.numpy.ones(2, getattr(jax.numpy, n))) for name in SCALAR_TYPES[:22]]
DTYPES += [check(f"numpy.{name}: a kind", lambda jax, n=name: [jax.numpy.issubdtype(d, getattr(jax.numpy, n)) for d in ("float32", "int8", "uint8", "complex64", "bool", "bfloat16")])
           for name in KINDS]
DTYPES += [check(f"numpy.{name}: constant", lambda jax, n=name: getattr(jax.numpy, n)) for name in ("e", "euler_gamma", "inf", "nan", "newaxis", "pi")]
DTYPES += [
    check("numpy.bool: dtype", lambda jax: np.dtype(jax.numpy.bool).name),
    check("numpy.dtype: from names", lambda jax: [jax.numpy.dtype(d).name for d in ("float32", np.int8, "bfloat16")]),
    check("numpy.ndarray: isinstance", lambda jax: [isinstance(jax.numpy.ones(2), jax.numpy.ndarray), isinstance(np.ones(2), jax.numpy.ndarray)]),
    check("numpy.float32: of a list", lambda jax: jax.numpy.float32([1, 2])),
    check("numpy.float32: compared with a dtype", lambda jax: [jax.numpy.ones(2).dtype == jax.numpy.float32, jax.numpy.ones(2).dtype == "float32"]),
    check("numpy.finfo: float32, bfloat16", lambda jax: [[float(getattr(jax.numpy.finfo(d), n)) for n in ("max", "min", "eps", "tiny", "bits")] for d in ("float32", "bfloat16", "float16", "float8_e4m3fn")]),
    check("numpy.finfo: of an integer", lambda jax: jax.numpy.finfo("int32")),
    check("numpy.iinfo: int8, uint32, int4", lambda jax: [[int(jax.numpy.iinfo(d).min), int(jax.numpy.iinfo(d).max), jax.numpy.iinfo(d).bits] for d in ("int8", "uint32", "int4")]),
    check("numpy.issubdtype: pairs", lambda jax: [jax.numpy.issubdtype("bfloat16", jax.numpy.floating), jax.numpy.issubdtype(np.int32, np.floating), jax.numpy.issubdtype(jax.numpy.int4, np.integer)]),
    check("numpy.isdtype: kinds", lambda jax: [jax.numpy.isdtype("float32", k) for k in ("real floating", "integral", "numeric", "bool", ("bool", "real floating"))]),
    check("numpy.isdtype: an unknown kind", lambda jax: jax.numpy.isdtype("float32", "strange")),
    check("numpy.can_cast: pairs", lambda jax: [jax.numpy.can_cast(a, b) for a, b in (("int8", "int16"), ("float32", "int32"), ("bfloat16", "float32"))]),
    check("numpy.promote_types: the lattice", lambda jax: [str(jax.numpy.promote_types(a, b)) for a in ("int8", "uint8", "int32", "uint32", "bfloat16", "float16", "float32", "complex64", "bool")
                                                           for b in ("int8", "uint8", "int32", "uint32", "bfloat16", "float16", "float32", "complex64", "bool")]),
    check("numpy.promote_types: with 64 bits", lambda jax: [str(jax.numpy.promote_types(a, b)) for a in ("int64", "uint64", "float64", "uint32") for b in ("int32", "float32", "int64", "complex64", "bfloat16")], x64=True),
    check("numpy.promote_types: small floats", lambda jax: jax.numpy.promote_types("float8_e4m3fn", "float8_e5m2")),
    check("numpy.result_type: numbers and arrays", lambda jax: [str(jax.numpy.result_type(*a)) for a in ((1,), (1.0,), (1, 2.0), (np.int8(1), 2), (jax.numpy.ones(2, "bfloat16"), 2.0), ("int16", "uint16"), (True, 1))]),
    check("numpy.result_type: nothing", lambda jax: jax.numpy.result_type()),
    check("numpy.__array_api_version__: a date", lambda jax: jax.numpy.__array_api_version__),
    check("numpy.__array_namespace_info__: default dtypes", lambda jax: {k: str(v) for k, v in jax.numpy.__array_namespace_info__().default_dtypes().items()}),
    check("dtypes.finfo, dtypes.iinfo: limits", lambda jax: [float(jax.dtypes.finfo("bfloat16").max), jax.dtypes.iinfo("int4").max]),
    check("dtypes.bfloat16, dtypes.float0: names", lambda jax: [np.dtype(jax.dtypes.bfloat16).name, str(jax.dtypes.float0)]),
    check("dtypes.prng_key, dtypes.extended: a tree", lambda jax: [jax.dtypes.issubdtype(jax.dtypes.prng_key, jax.dtypes.extended), jax.dtypes.issubdtype(np.dtype("float32"), jax.dtypes.extended)]),
    check("dtypes.scalar_type_of: numbers", lambda jax: [jax.dtypes.scalar_type_of(v).__name__ for v in (1, 2.0, True, 1j, np.float32(1))]),
    check("dtypes.itemsize_bits: types", lambda jax: [jax.dtypes.itemsize_bits(np.dtype(d)) for d in ("float32", "bool", ml_dtypes.bfloat16, ml_dtypes.int4)]),
]

# --- rest of numpy ---------------------------------------------------------------------------------------------------

NUMPY = [
    check("numpy.array_repr, numpy.array_str: texts", lambda jax: [jax.numpy.array_repr(jax.numpy.arange(3))[-23:], jax.numpy.array_str(jax.numpy.arange(3.0))]),
    check("numpy.c_, numpy.r_: joined", lambda jax: [jax.numpy.c_[X, X], jax.numpy.r_[X, 1, 2], jax.numpy.r_[0:3], jax.numpy.r_[-1:1:3j]]),
    check("numpy.mgrid, numpy.ogrid: grids", lambda jax: [jax.numpy.mgrid[0:2, 0:3], jax.numpy.ogrid[0:2, 0:3], jax.numpy.mgrid[0:1:3j]]),
    check("numpy.index_exp, numpy.s_: slices", lambda jax: [str(jax.numpy.index_exp[1:2, ...]), str(jax.numpy.s_[::2])]),
    check("numpy.iterable: yes and no", lambda jax: [jax.numpy.iterable(v) for v in ([1], 3, jax.numpy.ones(2))]),
    check("numpy.einsum_path: a chain", lambda jax: jax.numpy.einsum_path("ij,jk,kl->il", np.ones((2, 3)), np.ones((3, 4)), np.ones((4, 5)))[0]),
    check("numpy.vectorize: a signature", lambda jax: jax.numpy.vectorize(lambda a, b: a @ b, signature="(n),(n)->()")(np.ones((2, 3), np.float32), X)),
    check("numpy.vectorize: excluded", lambda jax: jax.numpy.vectorize(lambda a, k: a * k, excluded={1})(X, 3)),
    check("numpy.frompyfunc: a ufunc", lambda jax: (lambda f: [f(X, 2.0), f.reduce(jax.numpy.arange(1, 5)), f.outer(X, X)])(jax.numpy.frompyfunc(lambda a, b: a * b, 2, 1, identity=1))),
    check("numpy.ufunc: of add", lambda jax: [isinstance(jax.numpy.add, jax.numpy.ufunc), jax.numpy.add.reduce(X), jax.numpy.add.accumulate(X), jax.numpy.add.outer(X, X), jax.numpy.multiply.reduce(X), jax.numpy.add.at(jax.numpy.zeros(3), np.array([0, 0, 2]), 1.0, inplace=False)]),
    check("numpy.ufunc: attributes", lambda jax: [jax.numpy.add.nin, jax.numpy.add.nout, jax.numpy.add.identity, jax.numpy.multiply.identity]),
    check("numpy.arange: lengths in double precision", lambda jax: [jax.numpy.arange(*bounds).shape for bounds in ((0, 1, 0.01), (1.2, 4.8, 0.24), (0, 3, 0.03), (np.float64(0), 1, np.float64(0.01)), (np.float32(0), np.float32(1), np.float32(0.01)), (5, 1, -0.1))]),
    check("numpy.arange: bounds beyond the default width", lambda jax: jax.numpy.arange(2**32, 2**32 + 3)),
    check("numpy.ogrid, numpy.mgrid: steps and no slices", lambda jax: [jax.numpy.ogrid[1.2:4.8:0.24], jax.numpy.mgrid[()], jax.numpy.ogrid[()]]),
    check("numpy.full, lax.convert_element_type, numpy.eye: integers beyond the default width", lambda jax: [jax.numpy.full((2,), 0x85A308D3, "uint32"), jax.numpy.full_like(jax.numpy.zeros(2, "uint32"), 2**32 - 1), jax.lax.full((2,), 2**32 - 1, "uint32"), jax.lax.convert_element_type(2**32, "int32"), jax.lax.convert_element_type(2**100, "float32"), jax.numpy.eye(3, k=2**100), jax.numpy.zeros(2, "uint32").at[0].set(4294967295)]),
    check("numpy.array: uint64 under x64", lambda jax: managed(jax.enable_x64(True), lambda: [jax.numpy.array([6, 2**64 - 1], dtype="uint64"), refused(lambda: jax.numpy.array([6, 2**64 - 1]))])),
    check("numpy.ufunc.reduceat: segments", lambda jax: [jax.numpy.add.reduceat(jax.numpy.arange(8), np.array([0, 4, 1, 5])), jax.numpy.subtract.reduceat(jax.numpy.arange(12.0).reshape(3, 4), np.array([2, 0]), axis=1)]),
    check("numpy.ufunc.reduce: where and initial", lambda jax: [jax.numpy.bitwise_or.reduce(np.array([1, 2, 4]), where=np.array([True, False, True])), jax.numpy.subtract.reduce(X, initial=1.0, where=np.array([True, False, True])), jax.numpy.bitwise_and.reduce(jax.numpy.zeros((0, 3), int)), jax.numpy.logaddexp.reduce(X)]),
    check("numpy.ufunc: what it is compared by", lambda jax: [jax.numpy.logaddexp.identity, jax.numpy.frompyfunc(max, 2, 1).nargs, jax.numpy.frompyfunc(max, 2, 1) == jax.numpy.frompyfunc(max, 2, 1), jax.numpy.add.accumulate(np.array([True, True])), refused(lambda: setattr(jax.numpy.add, "nin", 3))]),
    check("numpy: device of new arrays", lambda jax: [make(device=jax.devices()[0]).devices() == {jax.devices()[0]} and make(device=jax.devices()[0]).committed for make in (partial(jax.numpy.zeros, 3), partial(jax.numpy.ones, 3), partial(jax.numpy.full, 3, 2), partial(jax.numpy.arange, 3), partial(jax.numpy.eye, 3), partial(jax.numpy.linspace, 0, 1), partial(jax.numpy.array, X), partial(jax.numpy.asarray, X), partial(jax.numpy.zeros_like, X), partial(jax.numpy.fft.fftfreq, 4))]),
    check("Array.view, tobytes, memoryview: memory", lambda jax: [jax.numpy.array([1 + 2j, 3]).view("float32"), jax.numpy.arange(4.0).view("complex64"), jax.numpy.arange(8, dtype="int4").view("int16"), jax.numpy.arange(4, dtype="int16").view("int4").astype("int32"), jax.numpy.ones((2, 2)).tobytes("C"), bytes(memoryview(jax.numpy.arange(3))), jax.numpy.array(memoryview(bytearray([1, 2])))]),
    check("numpy.zeros_like: anything with a shape and a dtype", lambda jax: jax.numpy.zeros_like(Described())),
    check("Array: index by a tuple of traced tuples, membership", lambda jax: [jax.jit(lambda x, i: x[i])(np.arange(9).reshape(3, 3), ((1, 1), (1, 2))), 1 in jax.numpy.arange(3), 5 in jax.numpy.arange(3)]),
    check("numpy: the library's own operations are free of the user's settings", lambda jax: managed(jax.numpy_rank_promotion("raise"), lambda: managed(jax.numpy_dtype_promotion("strict"), lambda: [jax.scipy.special.bessel_jn(X, v=2), jax.numpy.add.outer(X, X), jax.scipy.linalg.dft(4, "sqrtn"), jax.numpy.linalg.eigh(np.eye(2, dtype="complex64"))[0], jax.numpy.histogram2d(X, X)[0], refused(lambda: jax.numpy.add(X, np.ones(3, "int32"))), refused(lambda: jax.numpy.ones((2, 3)) + jax.numpy.ones(3))]))),
    check("scipy.cluster.vq.vq, scipy.integrate.trapezoid: small", lambda jax: [jax.scipy.cluster.vq.vq(np.ones((3, 2), "float32"), np.eye(2, dtype="float32")), jax.scipy.cluster.vq.vq(np.arange(3), np.arange(2)), jax.scipy.integrate.trapezoid(X, dx=2.0)]),
    check("lax.reduce: a tree", lambda jax: jax.lax.reduce({"a": X, "b": [X]}, {"a": np.float32(0), "b": [np.float32(1)]}, lambda x, y: {"a": x["a"] + y["a"], "b": [x["b"][0] * y["b"][0]]}, (0,))),
    check("lax.map: one batch of everything", lambda jax: jax.lax.map(lambda x: x * 2, X, batch_size=0)),
    check("lax.FftType: by number", lambda jax: [jax.lax.FftType(0).name, jax.lax.fft(X.astype("complex64"), jax.lax.FftType.IFFT, (3,))]),
    check("numpy.set_printoptions, numpy.get_printoptions, numpy.printoptions: precision", lambda jax: managed(jax.numpy.printoptions(precision=2), lambda: str(jax.numpy.array([1 / 3])))),
    check("numpy.save, numpy.load: a file", lambda jax: saved(jax)),
]


class Described:
    shape, dtype = (2, 3), np.dtype("int16")

    def __jax_array__(self):
        raise RuntimeError("nobody asks for values")


def refused(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return None


def saved(jax):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.npy")
        jax.numpy.save(path, jax.numpy.asarray(X))
        return jax.numpy.load(path)


# --- random keys -----------------------------------------------------------------------------------------------------

KEYS = [
    check("random.key: seeds", lambda jax: [jax.random.key_data(jax.random.key(s)) for s in (0, 1, -1, 2**31 - 1)]),
    check("random.key: implementations", lambda jax: [str(jax.random.key(0, impl=i).dtype) for i in ("threefry2x32", "rbg", "unsafe_rbg")]),
    check("random.key: an unknown implementation", lambda jax: jax.random.key(0, impl="dice")),
    check("random.key: a float", lambda jax: jax.random.key(0.5)),
    check("random.key: shape and text", lambda jax: [jax.random.key(3).shape, jax.random.key(3).ndim, str(jax.random.key(3).dtype), repr(jax.random.key(3))]),
    check("random.PRNGKey: raw", lambda jax: jax.random.PRNGKey(42)),
    check("random.split: numbers and shapes", lambda jax: [jax.random.key_data(jax.random.split(jax.random.key(1), n)) for n in (2, 3, (2, 2))]),
    check("random.split: raw", lambda jax: jax.random.split(jax.random.PRNGKey(1), 3)),
    check("random.split: several keys", lambda jax: jax.random.split(jax.random.split(jax.random.key(1)))),
    check("random.fold_in: numbers", lambda jax: [jax.random.key_data(jax.random.fold_in(jax.random.key(1), n)) for n in (0, 1, 12345)]),
    check("random.fold_in: traced", lambda jax: jax.random.key_data(jax.jit(jax.random.fold_in)(jax.random.key(1), 3))),
    check("random.key_data, random.wrap_key_data: there and back", lambda jax: jax.random.wrap_key_data(jax.random.key_data(jax.random.key(5)))),
    check("random.wrap_key_data: a wrong shape", lambda jax: jax.random.wrap_key_data(jax.numpy.zeros(3, "uint32"))),
    check("random.key_impl: names", lambda jax: [str(jax.random.key_impl(jax.random.key(0))), str(jax.random.key_impl(jax.random.PRNGKey(0)))]),
    check("random.clone: the same key", lambda jax: jax.random.clone(jax.random.key(0))),
    check("random.key: arithmetic is refused", lambda jax: jax.random.key(0) + 1),
    check("random.key: indexed and stacked", lambda jax: [jax.random.split(jax.random.key(0), 4)[1:3], jax.numpy.stack([jax.random.key(0), jax.random.key(1)])]),
    check("random.key: in a scan", lambda jax: jax.lax.scan(lambda k, _: (jax.random.split(k)[0], jax.random.uniform(k)), jax.random.key(0), None, length=3)[1]),
    check("random.PRNGKey: an array seed", lambda jax: jax.random.PRNGKey(jax.numpy.int32(7))),
]

# --- primitives, enumerations and dimension numbers of lax -----------------------------------------------------------

UNARY = ["acosh_p", "asinh_p", "atanh_p", "cosh_p", "erf_inv_p", "erf_p", "exp_p", "expm1_p", "log1p_p", "log_p", "neg_p", "rsqrt_p", "sinh_p", "sqrt_p", "square_p", "tanh_p"]
PARAMETERS = {"acosh_p": {}, "asinh_p": {}, "atanh_p": {}, "cosh_p": {}, "sinh_p": {}, "erf_inv_p": {}, "erf_p": {}, "neg_p": {}, "square_p": {}}


def bound(jax, name):
    point = 1.25 if name == "acosh_p" else 0.25
    primitive = getattr(jax.lax, name)
    parameters = PARAMETERS.get(name, {"accuracy": None})
    return [primitive.name, primitive.bind(jax.numpy.float32(point), **parameters)]


PRIMITIVES = [check(f"lax.{name}: bind", lambda jax, n=name: bound(jax, n)) for name in UNARY]
PRIMITIVES += [check(f"lax.{name}: bind", lambda jax, n=name: [getattr(jax.lax, n).name, getattr(jax.lax, n).bind(jax.numpy.float32(3.0), jax.numpy.float32(2.0))])
               for name in ("add_p", "sub_p", "mul_p", "div_p", "pow_p")]
PRIMITIVES += [
    check("lax.integer_pow_p: bind", lambda jax: jax.lax.integer_pow_p.bind(jax.numpy.float32(3.0), y=3)),
    check("lax.conj_p: bind", lambda jax: jax.lax.conj_p.bind(jax.numpy.complex64(1 + 2j), input_dtype=np.dtype("complex64"))),
    check("lax.broadcast_in_dim_p, lax.convert_element_type_p, lax.dot_general_p, lax.stop_gradient_p: names", lambda jax: [str(getattr(jax.lax, n)) for n in ("broadcast_in_dim_p", "convert_element_type_p", "dot_general_p")]),
    check("lax.add_p: equations name it", lambda jax: [e.primitive is jax.lax.add_p or e.primitive == jax.lax.add_p for e in jax.make_jaxpr(lambda x: x + x)(1.0).eqns]),
    check("lax.Precision: members", lambda jax: [p.name for p in jax.lax.Precision] + [jax.lax.Precision("highest").name, str(jax.lax.Precision.HIGH)]),
    check("lax.Precision: used", lambda jax: jax.lax.dot(X, X, precision=jax.lax.Precision.HIGHEST)),
    check("lax.GatherScatterMode: members", lambda jax: [jax.lax.GatherScatterMode.from_any(m).name for m in ("clip", "fill", "drop", "promise_in_bounds")]),
    check("lax.RoundingMethod: used", lambda jax: [jax.lax.round(np.array([0.5, 1.5, 2.5], np.float32), m) for m in (jax.lax.RoundingMethod.AWAY_FROM_ZERO, jax.lax.RoundingMethod.TO_NEAREST_EVEN)]),
    check("lax.FftType: members", lambda jax: [f.name for f in jax.lax.FftType]),
    check("lax.RandomAlgorithm: members", lambda jax: sorted(a for a in dir(jax.lax.RandomAlgorithm) if a.startswith("RNG_"))),
    check("lax.DotAlgorithmPreset: a member", lambda jax: jax.lax.DotAlgorithmPreset.F32_F32_F32.name),
    check("lax.GatherDimensionNumbers: used", lambda jax: jax.lax.gather(jax.numpy.arange(6.0).reshape(2, 3), np.array([[1], [0]]), jax.lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 3))),
    check("lax.ScatterDimensionNumbers: used", lambda jax: jax.lax.scatter_add(jax.numpy.zeros(4), np.array([[1], [3]]), jax.numpy.ones(2), jax.lax.ScatterDimensionNumbers((), (0,), (0,)))),
    check("lax.ConvDimensionNumbers: from texts", lambda jax: jax.lax.conv_dimension_numbers((1, 4, 4, 2), (3, 3, 2, 5), ("NHWC", "HWIO", "NHWC"))),
    check("lax.RaggedDotDimensionNumbers: fields", lambda jax: jax.lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0]).lhs_ragged_dimensions),
    check("lax.platform_dependent: the default", lambda jax: jax.lax.platform_dependent(X, cpu=lambda x: x + 1, default=lambda x: x - 1)),
    check("lax.composite: same value", lambda jax: jax.lax.composite(lambda x, *, k: x * k, name="mine.times")(X, k=3)),
    check("lax.rng_uniform: bounds", lambda jax: (lambda u: [u.shape, str(u.dtype), bool(((u >= 1) & (u < 2)).all())])(jax.lax.rng_uniform(np.float32(1), np.float32(2), (5,)))),
]

COLLECTIVES = [check(f"lax.{name}: under vmap", lambda jax, f=function: jax.vmap(lambda x: f(jax.lax, x), axis_name="i")(np.arange(6, dtype=np.float32).reshape(2, 3))) for name, function in {
    "psum": lambda lax, x: lax.psum(x, "i"), "pmean": lambda lax, x: lax.pmean({"a": x}, "i"), "pmax": lambda lax, x: lax.pmax(x, "i"), "pmin": lambda lax, x: lax.pmin(x, "i"),
    "axis_index": lambda lax, x: lax.axis_index("i"), "axis_size": lambda lax, x: x * lax.axis_size("i"), "all_gather": lambda lax, x: lax.all_gather(x, "i"),
    "ppermute": lambda lax, x: lax.ppermute(x * 2, "i", [(0, 1), (1, 0)]), "all_to_all": lambda lax, x: lax.all_to_all(x[:2], "i", 0, 0), "pswapaxes": lambda lax, x: lax.pswapaxes(x[:2], "i", 0),
    "psum_scatter": lambda lax, x: lax.psum_scatter(x[:2], "i"),
}.items()]
COLLECTIVES += [
    check("lax.psum: of a constant", lambda jax: jax.vmap(lambda x: x * jax.lax.psum(1, "i"), axis_name="i")(X)),
    check("lax.all_gather: tiled", lambda jax: jax.vmap(lambda x: jax.lax.all_gather(x, "i", tiled=True), axis_name="i")(np.ones((2, 3), np.float32))),
    check("lax.psum: its gradient", lambda jax: jax.grad(lambda x: jax.vmap(lambda v: jax.lax.psum(v**2, "i"), axis_name="i")(x).sum())(X)),
    check("lax.psum: two axes", lambda jax: jax.vmap(jax.vmap(lambda x: jax.lax.psum(x, ("i", "j")), axis_name="j"), axis_name="i")(np.ones((2, 3), np.float32))),
]

# --- programs as data ------------------------------------------------------------------------------------------------


def program(jax):
    return jax.make_jaxpr(lambda x, y: (jax.lax.sin(x) * y + 1.0, jax.lax.sort_key_val(x, x)[0]))(X, X)


def evaluated(jax, closed, *args):
    """A program run equation by equation, as users of jax write it."""
    core = module(jax, "extend.core")
    values = dict(zip(closed.jaxpr.invars, args)) | dict(zip(closed.jaxpr.constvars, closed.consts))

    def read(atom):
        return atom.val if isinstance(atom, core.Literal) else values[atom]

    for equation in closed.jaxpr.eqns:
        outputs = equation.primitive.bind(*map(read, equation.invars), **equation.params)
        values.update(zip(equation.outvars, outputs if equation.primitive.multiple_results else [outputs]))
    return [read(atom) for atom in closed.jaxpr.outvars]


def user_primitive(jax, name="twice"):
    core = module(jax, "extend.core")
    ad, batching, mlir = (module(jax, f"interpreters.{name}") for name in ("ad", "batching", "mlir"))
    twice = core.Primitive(name)
    twice.def_impl(lambda x: x * 2)
    twice.def_abstract_eval(lambda x: x)
    ad.defjvp(twice, lambda t, x: twice.bind(t))
    ad.deflinear(twice, lambda ct: [twice.bind(ct)])
    batching.defvectorized(twice)
    mlir.register_lowering(twice, mlir.lower_fun(lambda x: x * 2, multiple_results=False))
    return twice


def called(jax, primitive):
    bind = primitive.bind
    return [bind(jax.numpy.asarray(X)), jax.jit(bind)(X), jax.grad(lambda x: bind(x))(3.0), str(jax.make_jaxpr(bind)(X))]


PROGRAMS = [
    check("extend.core.ClosedJaxpr, extend.core.Jaxpr: parts", lambda jax: (lambda p: [type(p).__name__, type(p.jaxpr).__name__, len(p.eqns), [str(a) for a in p.in_avals], [str(a) for a in p.out_avals], len(p.consts), [str(v.aval) for v in p.jaxpr.invars], len(p.jaxpr.outvars)])(program(jax))),
    check("extend.core.JaxprEqn, extend.core.Var, extend.core.Literal, extend.core.DropVar: of an equation", lambda jax: [[e.primitive.name, sorted(e.params) if e.primitive.name == "sort" else None, [type(a).__name__ for a in e.invars], [type(v).__name__ for v in e.outvars], [str(v.aval) for v in e.outvars]] for e in program(jax).eqns]),
    check("extend.core.Literal: its value", lambda jax: [float(a.val) for e in jax.make_jaxpr(lambda x: x + 1.0)(2.0).eqns for a in e.invars if type(a).__name__ == "Literal"]),
    check("extend.core.jaxpr_as_fun: run", lambda jax: module(jax, "extend.core").jaxpr_as_fun(program(jax))(X, X)),
    check("extend.core.Primitive: bind of each equation", lambda jax: evaluated(jax, program(jax), X, X)),
    check("extend.core.Primitive: a program with loops", lambda jax: evaluated(jax, jax.make_jaxpr(lambda x: jax.lax.fori_loop(0, 3, lambda i, v: jax.lax.cond(v[0] > 0, lambda w: w * 2, lambda w: w - 1, v), x))(X), X)),
    check("extend.core.Primitive: of a gradient", lambda jax: evaluated(jax, jax.make_jaxpr(jax.grad(lambda x: jax.jit(jax.numpy.tanh)(x).sum()))(X), X)),
    check("extend.core.Primitive: a user's", lambda jax: (lambda p: [p.bind(jax.numpy.asarray(X)), jax.jit(p.bind)(X), jax.vmap(p.bind)(jax.numpy.asarray(X)), jax.grad(lambda x: p.bind(x))(3.0), str(jax.make_jaxpr(p.bind)(X))])(user_primitive(jax))),
    *(check(f"extend.core.Primitive: a user's called {name}, as one of the library is", lambda jax, name=name: called(jax, user_primitive(jax, name)))
      for name in ("multiply_add", "sin", "reduce_sum", "broadcast_in_dim")),
    check("extend.core.Primitive: without rules", lambda jax: module(jax, "extend.core").Primitive("bare").bind(X)),
    check("extend.core.Primitive: without a jvp", lambda jax: jax.grad(lambda x: bare(jax).bind(x))(3.0)),
    check("extend.core.Primitive: without a batching rule", lambda jax: jax.vmap(bare(jax).bind)(X)),
    check("extend.core.check_jaxpr: a sound one", lambda jax: module(jax, "core").check_jaxpr(program(jax).jaxpr) if hasattr(module(jax, "core"), "check_jaxpr") else None),
    check("extend.core.mapped_aval, extend.core.unmapped_aval: shapes", lambda jax: avals(jax)),
    check("extend.core.jaxpr_as_fun: under jit and grad", lambda jax: jax.jit(jax.grad(lambda x: module(jax, "extend.core").jaxpr_as_fun(jax.make_jaxpr(jax.lax.sin)(1.0))(x)[0]))(2.0)),
    check("stages.Wrapped: a jitted function", lambda jax: isinstance(jax.jit(lambda x: x), jax.stages.Wrapped)),
    check("stages.ArgInfo: of lowered", lambda jax: [(a.shape, str(a.dtype), a.donated) for a in jax.tree.leaves(jax.jit(lambda x: x).lower(X).args_info, is_leaf=lambda v: hasattr(v, "donated"))]),
]


def bare(jax):
    primitive = module(jax, "extend.core").Primitive("bare_but_typed")
    primitive.def_impl(lambda x: x)
    primitive.def_abstract_eval(lambda x: x)
    return primitive


def avals(jax):
    core = module(jax, "extend.core")
    aval = jax.typeof(jax.numpy.ones((2, 3)))
    return [str(core.mapped_aval(2, 0, aval)), str(core.unmapped_aval(4, 1, aval))]


# --- errors, trees, custom rules, the rest ---------------------------------------------------------------------------

ERRORS = ["ConcretizationTypeError", "InconclusiveDimensionOperation", "JAXIndexError", "JAXTypeError", "JaxRuntimeError", "JaxprTypeError", "KeyReuseError",
          "NonConcreteBooleanIndexError", "TracerArrayConversionError", "TracerBoolConversionError", "TracerIntegerConversionError", "UnexpectedTracerError"]
REST = [check(f"errors.{name}: what it is", lambda jax, n=name: [issubclass(getattr(jax.errors, n), b) for b in (TypeError, IndexError, RuntimeError, ValueError, Exception)]) for name in ERRORS]
REST += [
    check("custom_derivatives.custom_jvp, custom_derivatives.custom_vjp, custom_derivatives.custom_gradient, custom_derivatives.closure_convert: the same objects", lambda jax: [getattr(jax.custom_derivatives, n) is getattr(jax, n) for n in ("custom_jvp", "custom_vjp", "custom_gradient", "closure_convert")]),
    check("custom_derivatives.custom_jvp_call_p, custom_derivatives.custom_vjp_call_p: names", lambda jax: [jax.custom_derivatives.custom_jvp_call_p.name, jax.custom_derivatives.custom_vjp_call_p.name]),
    check("custom_derivatives.SymbolicZero: in a rule", lambda jax: symbolic(jax)),
    check("custom_derivatives.CustomVJPPrimal, custom_derivatives.custom_vjp_primal_tree_values: in a rule", lambda jax: symbolic_vjp(jax)),
    check("dlpack.from_dlpack: of NumPy", lambda jax: module(jax, "dlpack").from_dlpack(np.arange(3, dtype=np.int32))),
    check("dlpack.is_supported_dtype: types", lambda jax: [module(jax, "dlpack").is_supported_dtype(np.dtype(d)) for d in ("float32", "bool", ml_dtypes.bfloat16)]),
    check("tree_util.register_pytree_with_keys_class: paths", lambda jax: keys_class(jax)),
    check("tree_util.tree_reduce_associative, tree.reduce_associative: a sum", lambda jax: jax.tree.reduce_associative(lambda a, b: a + b, [1, (2, 3), 4])),
    check("tree_util.is_tree_node: types", lambda jax: [jax.tree_util.is_tree_node(v) if hasattr(jax.tree_util, "is_tree_node") else None for v in ((1,), 1)]),
    check("tree_util.default_registry: flattens", lambda jax: jax.tree_util.default_registry.flatten([1, (2,)])[0]),
    check("profiler.TraceAnnotation, profiler.StepTraceAnnotation: run", lambda jax: [managed(module(jax, "profiler").TraceAnnotation("here"), lambda: 1), managed(module(jax, "profiler").StepTraceAnnotation("step", step_num=1), lambda: 2)]),
    check("profiler.annotate_function: same value", lambda jax: module(jax, "profiler").annotate_function(lambda x: x + 1, name="f")(1)),
    check("image.ResizeMethod: members", lambda jax: [m.name for m in module(jax, "image").ResizeMethod]),
    check("image.ResizeMethod: from a text", lambda jax: module(jax, "image").ResizeMethod.from_string("bilinear").name),
    check("effects_barrier: nothing", lambda jax: jax.effects_barrier()),
    check("live_arrays: a list", lambda jax: [jax.numpy.ones(2), isinstance(jax.live_arrays(), list)][1]),
    check("local_devices, process_indices: one", lambda jax: [len(jax.local_devices()), jax.process_indices()]),
    check("device_count, local_device_count, process_count, process_index: numbers", lambda jax: [jax.device_count(), jax.local_device_count(), jax.process_count(), jax.process_index()]),
    check("default_device: inside", lambda jax: managed(jax.default_device(jax.devices("cpu")[0]), lambda: jax.numpy.ones(2))),
    check("Device: attributes", lambda jax: [jax.devices()[0].id, jax.devices()[0].platform, jax.devices()[0].process_index, isinstance(jax.devices()[0], jax.Device)]),
    check("Device: text", lambda jax: [repr(jax.devices()[0]), str(jax.devices()[0])]),
    check("devices: an unknown platform", lambda jax: jax.devices("abacus")),
    check("Array: isinstance", lambda jax: isinstance(jax.numpy.ones(2), jax.Array)),
    check("__version_info__: numbers", lambda jax: jax.__version_info__),
    check("check_tracer_leaks, log_compiles: contexts", lambda jax: [managed(getattr(jax, n)(False), lambda: 1) for n in ("check_tracer_leaks", "log_compiles")]),
    check("debug_key_reuse: a key used twice", lambda jax: managed(jax.debug_key_reuse(True), lambda: twice_used(jax)), skip="does not exist"),
    check("copy_to_host_async: a tree", lambda jax: jax.copy_to_host_async({"a": jax.numpy.ones(2)}), skip="comes with devices that are not the host"),
    check("new_ref, freeze: written and read", lambda jax: jax.jit(lambda x: written(jax, x))(X)),
    check("new_ref: outside jit", lambda jax: written(jax, jax.numpy.asarray(X))),
    check("transfer_guard: allow", lambda jax: managed(jax.transfer_guard("allow"), lambda: jax.numpy.ones(2)), skip="comes with devices that are not the host"),
    check("transfer_guard_device_to_host, transfer_guard_host_to_device, transfer_guard_device_to_device: allow", lambda jax: [managed(getattr(jax, f"transfer_guard_{n}")("allow"), lambda: 1) for n in ("device_to_host", "host_to_device", "device_to_device")], skip="comes with devices that are not the host"),
    check("nn.initializers.Initializer: is there", lambda jax: hasattr(module(jax, "nn.initializers"), "Initializer")),
    check("numpy: a missing name", lambda jax: jax.numpy.no_such_name),
    check("lax: a missing name", lambda jax: jax.lax.no_such_name),
    check("experimental: a missing module", lambda jax: importlib.import_module(f"{jax.__name__}.no_such_module")),
]


def symbolic(jax):
    f = jax.custom_jvp(lambda x, y: x * y)
    seen = []

    def rule(primals, tangents):
        seen.extend(type(t).__name__ == "SymbolicZero" for t in tangents)
        return primals[0] * primals[1], tangents[0] * 3.0

    f.defjvp(rule, symbolic_zeros=True)
    return [[float(v) for v in jax.jvp(lambda x: f(x, 2.0), (1.0,), (1.0,))], seen]


def symbolic_vjp(jax):
    f = jax.custom_vjp(lambda x, y: x * y)
    seen = []

    def forward(x, y):
        seen.extend([type(x).__name__, x.perturbed, y.perturbed])
        return x.value * y.value, y.value

    f.defvjp(forward, lambda y, g: (g * y, None), symbolic_zeros=True)
    return [jax.grad(lambda x: f(x, 2.0))(1.0), seen]


def keys_class(jax):
    @jax.tree_util.register_pytree_with_keys_class
    class Named:
        def __init__(self, a):
            self.a = a

        def tree_flatten_with_keys(self):
            return ((jax.tree_util.GetAttrKey("a"), self.a),), None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

    return [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(Named((1, 2)))]


def twice_used(jax):
    key = jax.random.key(0)
    return jax.random.uniform(key) + jax.random.uniform(key)


def written(jax, x):
    ref = jax.new_ref(x)
    ref[1] = 7.0
    ref[0] += 1.0
    return ref[...] * 2, jax.freeze(ref)


CASES = DTYPES + NUMPY + KEYS + PRIMITIVES + COLLECTIVES + PROGRAMS + REST
