"""Members of arrays: operators with every kind of operand, methods, indexing, at[], conversions and printing."""

import copy
import operator
import pickle

from makers import *

# --- operators -------------------------------------------------------------------------------------------------------

LEFTS = {
    "i32": lambda jax: jax.numpy.array([-7, 3, 5]),
    "f32": lambda jax: jax.numpy.array([-1.5, 2.0, 0.25]),
    "u8": lambda jax: jax.numpy.array([1, 2, 250], "uint8"),
    "bf16": lambda jax: jax.numpy.array([1.5, -2.0, 3.0], "bfloat16"),
    "bool": lambda jax: jax.numpy.array([True, False, True]),
    "c64": lambda jax: jax.numpy.array([1 + 2j, -1j, 0.5]),
    "weak": lambda jax: jax.numpy.asarray(3.0),
}
RIGHTS = {
    "2": lambda jax: 2,
    "2.5": lambda jax: 2.5,
    "True": lambda jax: True,
    "1j": lambda jax: 1j,
    "np.float32(2)": lambda jax: np.float32(2),
    "np.array([1, 2, 3], 'int8')": lambda jax: np.array([1, 2, 3], "int8"),
    "i32": lambda jax: jax.numpy.array([2, -2, 4]),
    "f16": lambda jax: jax.numpy.array([2, -2, 4], "float16"),
    "'text'": lambda jax: "text",
    "None": lambda jax: None,
    "[1, 2, 3]": lambda jax: [1, 2, 3],
}
BINARY = {
    "__add__": operator.add, "__sub__": operator.sub, "__mul__": operator.mul, "__truediv__": operator.truediv,
    "__floordiv__": operator.floordiv, "__mod__": operator.mod, "__pow__": operator.pow, "__eq__": operator.eq,
    "__ne__": operator.ne, "__lt__": operator.lt, "__le__": operator.le, "__gt__": operator.gt, "__ge__": operator.ge,
    "__and__": operator.and_, "__or__": operator.or_, "__xor__": operator.xor, "__lshift__": operator.lshift,
    "__rshift__": operator.rshift, "__matmul__": operator.matmul, "__divmod__": divmod,
}
REFLECTED = {
    "__radd__": operator.add, "__rsub__": operator.sub, "__rmul__": operator.mul, "__rtruediv__": operator.truediv,
    "__rfloordiv__": operator.floordiv, "__rmod__": operator.mod, "__rpow__": operator.pow, "__rand__": operator.and_,
    "__ror__": operator.or_, "__rxor__": operator.xor, "__rlshift__": operator.lshift, "__rrshift__": operator.rshift,
    "__rdivmod__": divmod,
}
FEW = ["2", "2.5", "np.float32(2)", "i32"]  # operands that every operator meets


def binary(name, function, left, right):
    return check(f"Array.{name}: {left} with {right}", lambda jax: function(LEFTS[left](jax), RIGHTS[right](jax)))


OPERATORS = [binary("__add__", operator.add, left, right) for left in LEFTS for right in RIGHTS]
OPERATORS += [binary(name, function, left, right) for name, function in BINARY.items() for left in ("i32", "f32", "bool")
              for right in FEW if name != "__add__"]
OPERATORS += [binary(name, BINARY[name], left, right) for name in ("__truediv__", "__floordiv__", "__mod__", "__pow__", "__lt__")
              for left in ("u8", "bf16", "c64", "weak") for right in ("2", "2.5", "i32")]
OPERATORS += [check(f"Array.{name}: {right} before {left}", lambda jax, f=function, l=left, r=right: f(RIGHTS[r](jax), LEFTS[l](jax)))
              for name, function in REFLECTED.items() for left in ("i32", "f32", "bool") for right in ("2", "2.5")]
OPERATORS += [check(f"Array.{name}: {left}", lambda jax, f=function, l=left: f(LEFTS[l](jax)))
              for name, function in (("__neg__", operator.neg), ("__pos__", operator.pos), ("__abs__", abs),
                                     ("__invert__", operator.invert), ("__round__", round), ("__len__", len))
              for left in LEFTS]
OPERATORS += [
    case("Array.__matmul__", f32(2, 3), f32(3, 2)),
    case("Array.__rmatmul__", f32(3, 2), f32(2, 3)),
    case("Array.__add__", f32(2, 3), f32(3)),
    case("Array.__mul__", f32(2, 1), f32(3)),
    case("Array.__pow__", f32(3, low=0.1), f32(3)),
    case("Array.__pow__", f32(3), 3),
    case("Array.__sub__", f32(2, 3), f32(4)),
    check("Array.__add__: rows in place", lambda jax: operator.iadd(jax.numpy.arange(3), 2)),
    check("Array.__add__: a sum of a list", lambda jax: sum([jax.numpy.arange(3), jax.numpy.ones(3)])),
    check("Array.__round__: two digits", lambda jax: round(jax.numpy.array([1.236, -0.444]), 2)),
    check("Array.__setitem__: refused", lambda jax: operator.setitem(jax.numpy.arange(3), 0, 1)),
    check("Array.__eq__: a hash is refused", lambda jax: hash(jax.numpy.arange(3))),
]

# --- methods and properties ------------------------------------------------------------------------------------------

METHODS = [
    case("Array.T", f32(2, 3)), case("Array.T", f32(2, 3, 4)), case("Array.mT", f32(2, 3, 4)), case("Array.mT", f32(3)),
    case("Array.real", c64(3)), case("Array.real", f32(3)), case("Array.imag", c64(3)), case("Array.imag", f32(3)),
    case("Array.shape", f32(2, 3)), case("Array.size", f32(2, 3)), case("Array.ndim", f32(2, 3)),
    case("Array.dtype", bf16(2, 3)), case("Array.itemsize", bf16(2)), case("Array.nbytes", c64(2, 3)),
    case("Array.weak_type", f32(2)), check("Array.weak_type: of a number", lambda jax: jax.numpy.asarray(2).weak_type),
    case("Array.all", b1(2, 3)), case("Array.all", b1(2, 3), axis=0), case("Array.any", f32(2, 3), axis=1, keepdims=True),
    case("Array.argmax", f32(2, 3)), case("Array.argmax", f32(2, 3), axis=1), case("Array.argmin", HARD32),
    case("Array.argpartition", f32(5), 2, vmap=False), case("Array.argsort", f32(2, 4)), case("Array.argsort", i32(6), descending=True),
    case("Array.astype", f32(3), "int32"), case("Array.astype", i32(3), "bool"), case("Array.astype", f32(3), "bfloat16"),
    case("Array.astype", c64(3), "float32"), case("Array.astype", f32(3), float), case("Array.byteswap", i16(3)),
    case("Array.choose", array([0, 1, 0]), [f32(3), f32(3)], mode="clip"), case("Array.clip", f32(4), -0.5, 0.5),
    case("Array.clip", i32(4), min=0), case("Array.clip", i32(4), 0.5, None), case("Array.compress", f32(3, 2), raw(np.array([True, False, True])), axis=0, vmap=False),
    case("Array.conj", c64(3)), case("Array.conjugate", f32(3)), case("Array.copy", f32(3)),
    case("Array.cumprod", f32(2, 3)), case("Array.cumprod", i8(3), axis=0), case("Array.cumsum", f32(2, 3), axis=1),
    case("Array.cumsum", b1(4)), case("Array.diagonal", f32(3, 4)), case("Array.diagonal", f32(2, 3, 4), 1, 1, 2),
    case("Array.dot", f32(2, 3), f32(3)), case("Array.dot", i32(3), i32(3)), case("Array.flatten", f32(2, 3)),
    case("Array.flatten", f32(2, 3), order="F"), case("Array.item", f32()), case("Array.item", f32(2, 3), 1, 2),
    case("Array.item", f32(2)), case("Array.max", f32(2, 3), axis=0), case("Array.max", zeros((0,))), case("Array.max", f32(3), initial=1.0),
    case("Array.mean", i32(2, 3)), case("Array.mean", f32(2, 3), axis=(0, 1), keepdims=True), case("Array.mean", bf16(7), where=raw(np.arange(7) > 2)),
    case("Array.min", HARD32), case("Array.min", i32(2, 3), 1), case("Array.nonzero", array([[0, 2], [3, 0]])),
    case("Array.nonzero", array([[0, 2], [3, 0]]), size=3, fill_value=-1), case("Array.prod", f32(2, 3), axis=0), case("Array.prod", u8(3)),
    case("Array.ptp", f32(2, 3)), case("Array.ptp", i32(2, 3), axis=1), case("Array.ravel", f32(2, 3)), case("Array.ravel", f32(2, 3), order="F"),
    case("Array.repeat", f32(2, 2), 2), case("Array.repeat", f32(2, 2), 2, axis=0), case("Array.repeat", f32(3), raw(np.array([1, 0, 2])), vmap=False),
    case("Array.reshape", f32(2, 3), 3, 2), case("Array.reshape", f32(2, 3), (3, -1)), case("Array.reshape", f32(2, 3), 4),
    case("Array.reshape", f32(2, 3), -1, order="F"), case("Array.round", f32(3), 1), case("Array.round", HARD32), case("Array.round", i32(3), decimals=-1),
    case("Array.searchsorted", array([1.0, 2.0, 3.0]), array([0.5, 2.0, 9.0])), case("Array.searchsorted", array([1, 2, 3]), 2, side="right"),
    case("Array.sort", f32(2, 3)), case("Array.sort", HARD32), case("Array.sort", i32(2, 3), axis=0, descending=True), case("Array.squeeze", f32(1, 3, 1)),
    case("Array.squeeze", f32(1, 3, 1), axis=0), case("Array.squeeze", f32(1, 3, 1), axis=1), case("Array.std", f32(2, 3)), case("Array.std", f32(2, 3), axis=1, ddof=1),
    case("Array.std", i32(3)), case("Array.sum", f32(2, 3)), case("Array.sum", u8(3)), case("Array.sum", b1(3)), case("Array.sum", f32(2, 3), axis=2),
    case("Array.sum", f32(2, 3), axis=0, dtype="bfloat16"), case("Array.sum", HARD32), case("Array.swapaxes", f32(2, 3, 4), 0, -1), case("Array.swapaxes", f32(2, 3), 0, 2),
    case("Array.take", f32(5), array([0, 3, 9])), case("Array.take", f32(2, 3), array([2, 0]), axis=1), case("Array.take", i32(5), array([7, -1]), mode="clip"),
    case("Array.tobytes", f32(3)), case("Array.tolist", i32(2, 2)), case("Array.tolist", f32()), case("Array.tolist", b1(2)),
    case("Array.trace", f32(3, 3)), case("Array.trace", i32(3, 4), 1), case("Array.transpose", f32(2, 3, 4)), case("Array.transpose", f32(2, 3, 4), 1, 0, 2),
    case("Array.transpose", f32(2, 3), (1, 0)), case("Array.transpose", f32(2, 3), (0, 0)), case("Array.var", f32(2, 3), axis=0), case("Array.var", c64(3)),
    case("Array.var", f32(3), ddof=3), case("Array.var", bf16(3, 4)), case("Array.view", f32(3), "int32"), case("Array.view", f32(4), "uint8"), case("Array.view", i8(4), "int32"),
    case("Array.view", b1(4), "uint8"), case("Array.is_deleted", f32(3)), case("Array.is_fully_addressable", f32(3)), case("Array.is_fully_replicated", f32(3)),
    case("Array.committed", f32(3)), case("Array.on_device_size_in_bytes", f32(3)), case("Array.block_until_ready", f32(3), transforms=False),
    case("Array.addressable_data", f32(3), 0, transforms=False), case("Array.copy_to_host_async", f32(3), transforms=False), check("Array.platform: of the default device", lambda jax: jax.numpy.arange(3).platform()),
    check("Array.addressable_shards: one", lambda jax: [s.data for s in jax.numpy.arange(3).addressable_shards]),
    check("Array.global_shards: one", lambda jax: [s.index for s in jax.numpy.arange(3).global_shards]),
    check("Array.device: the default", lambda jax: jax.numpy.arange(3).device == jax.devices()[0]),
    check("Array.devices: the default", lambda jax: jax.numpy.arange(3).devices() == {jax.devices()[0]}),
    check("Array.sharding: one device", lambda jax: type(jax.numpy.arange(3).sharding).__name__),
    check("Array.to_device: the default", lambda jax: jax.numpy.arange(3).to_device(jax.devices()[0])),
    check("Array.aval: of an array", lambda jax: str(jax.numpy.arange(3.0).aval)),
    check("Array.aval: of a number", lambda jax: repr(jax.numpy.asarray(3).aval)),
    check("Array.delete: then used", lambda jax: [x := jax.numpy.arange(3), x.delete(), x + 1]),
    check("Array.delete: is_deleted", lambda jax: [x := jax.numpy.ones(3), x.delete(), x.is_deleted()][2]),
    check("Array.unsafe_buffer_pointer: a number", lambda jax: type(jax.numpy.arange(3).unsafe_buffer_pointer())),
    check("Array.astype: an unknown type", lambda jax: jax.numpy.arange(3).astype("nonsense")),
    check("Array.nothing: does not exist", lambda jax: jax.numpy.arange(3).nothing),
]

# --- indexing --------------------------------------------------------------------------------------------------------


def indexed(text, x="jax.numpy.arange(24.0).reshape(2, 3, 4)"):
    return check(f"Array.__getitem__: x[{text}]", lambda jax: eval(f"{x}[{text}]", {"jax": jax, "jnp": jax.numpy, "np": np}))


INDEXING = [indexed(text) for text in (
    "0", "-1", "1, 2", "1, 2, 3", "..., 0", "0, ...", "None", ":, None, 1", "..., None", "1:", "::2", "::-1", ":, ::-1, 1:3", "5", "-9", "2:1",
    ":, 10:20", "0:2:5", "jnp.array([1, 0, 1])", "jnp.array([[1, 0], [0, 1]])", ":, jnp.array([2, 0])", "jnp.array([1, 0]), jnp.array([2, 0])",
    "jnp.array([1, 0]), :, jnp.array([2, 0])", "..., jnp.array([2, 0])", "jnp.array([1, 7])", "jnp.array([-1, -2])", "np.array([1, 0])", "np.int64(1)",
    "jnp.int32(1)", "jnp.array(1), 1:", "jnp.ones((2,), bool)", "np.array([True, False])", ":, np.array([True, False, True])", "jnp.zeros((2, 3), bool)",
    "True", "False", "None, ..., None", "()", "np.array([], int)", "jnp.array([0, 1])[:, None], jnp.array([0, 2])", "1, :, jnp.array([0, 1])",
    "jnp.array([0, 1]), None, 1", "slice(None, 1)", "[0, 1]", "(0, [0, 1])", "1.5", "'a'", "0, 0, 0, 0", "..., ...", "jnp.array([0.5])", "jnp.ones((3,), bool)",
    "0, np.arange(3) > 0", "::0", "jnp.array([0, 1], 'uint8')", "1:jnp.array(2)", "{}",
)]
INDEXING += [
    case("Array.__getitem__", f32(3, 4), lib(lambda jax: (slice(1, None), 0)), transforms=True),
    case("Array.__getitem__", f32(3, 4), array([0, 2])),
    case("Array.__getitem__", f32(3, 4), (array([0, 2]), array([1, 1])), transforms=True),
    case("Array.__getitem__", f32(3, 4), b1(3), transforms=True),
    case("Array.__getitem__", f32(3, 4), array(1), transforms=True),
    check("Array.__iter__: rows", lambda jax: list(jax.numpy.arange(6).reshape(2, 3))),
    check("Array.__iter__: of a number", lambda jax: list(jax.numpy.array(3))),
    check("Array.__iter__: unpacked under jit", lambda jax: jax.jit(lambda x: (lambda a, b: a - b)(*x))(jax.numpy.arange(2.0))),
    check("Array.__reversed__: rows", lambda jax: list(reversed(jax.numpy.arange(3)))),
    check("Array.__contains__: in", lambda jax: [2 in jax.numpy.arange(3), 9 in jax.numpy.arange(3)]),
]

UPDATES = {"set": 9.0, "add": 2.0, "subtract": 2.0, "multiply": 3.0, "mul": 3.0, "divide": 2.0, "power": 2.0, "min": 1.5, "max": 1.5}
AT = [check(f"Array.at, Array.at.{name}: x.at[{text}].{name}({value})",
            lambda jax, n=name, t=text, v=value: eval(f"getattr(jnp.arange(6.0).reshape(2, 3).at[{t}], n)(v)", {"jnp": jax.numpy, "n": n, "v": v}))
      for name, value in UPDATES.items() for text in ("0", "1, 1:", "jnp.array([0, 0, 1]), 2", "..., 9")]
AT += [
    check("Array.at.get: inside and outside", lambda jax: [jax.numpy.arange(3.0).at[i].get() for i in (1, 7)]),
    check("Array.at.get: filled", lambda jax: [jax.numpy.arange(3).at[7].get(mode="fill"), jax.numpy.arange(3).at[7].get(mode="fill", fill_value=-5)]),
    check("Array.at.get: modes", lambda jax: [jax.numpy.arange(3.0).at[jax.numpy.array([1, 9, -9])].get(mode=m) for m in ("clip", "fill", "promise_in_bounds")]),
    check("Array.at.set: modes", lambda jax: [jax.numpy.arange(3.0).at[jax.numpy.array([1, 9])].set(7.0, mode=m) for m in ("clip", "drop")]),
    check("Array.at.set: no wrapping", lambda jax: jax.numpy.arange(3.0).at[jax.numpy.array([-1])].set(7.0, wrap_negative_indices=False)),
    check("Array.at.set: arrays", lambda jax: jax.numpy.zeros((2, 3)).at[:, 1:].set(jax.numpy.ones(2))),
    check("Array.at.set: a wrong shape", lambda jax: jax.numpy.zeros((2, 3)).at[:, 1:].set(jax.numpy.ones(3))),
    check("Array.at.set: integers take floats", lambda jax: jax.numpy.arange(3).at[0].set(2.7)),
    *[check(f"Array.at.{name}: a list and a tuple", lambda jax, n=name: [
        getattr(jax.numpy.arange(1, 6, dtype="float32").at[np.arange(3)], n)([1.0, 2.0, 3.0]),
        getattr(jax.numpy.arange(1, 6, dtype="int16").at[1:3], n)((2, 3)) if n != "divide" else 0,
        getattr(jax.numpy.arange(1, 7, dtype="bfloat16").reshape(2, 3).at[:, 1], n)([jax.numpy.float32(2), 3.0]),
        jax.jit(lambda x: getattr(x.at[:1], n)([x[2]]))(jax.numpy.arange(1.0, 4.0)),
        jax.grad(lambda y: getattr(jax.numpy.arange(1.0, 4.0).at[1:], n)([y, 2.0]).sum())(3.0) if n not in ("divide", "power") else 0])
      for name in ("set", "add", "subtract", "multiply", "divide", "power", "min", "max")],
    check("Array.at.set: nested lists", lambda jax: jax.numpy.zeros((3, 2)).at[jax.numpy.array([0, 2])].set([[1, 2], [3, 4]])),
    check("Array.at.set: a list of integers beyond the array's type", lambda jax: jax.numpy.zeros(2, "int8").at[:].set([1, 300])),
    check("Array.at.set: a list that fits nowhere", lambda jax: jax.numpy.zeros(2).at[:].set([1.0, 2.0, 3.0])),
    check("Array.at.apply: of a list of positions", lambda jax: jax.numpy.arange(4.0).at[np.array([0, 2])].apply(lambda x: x + 5)),
    check("Array.at.set: a mask", lambda jax: jax.numpy.arange(3.0).at[jax.numpy.array([True, False, True])].set(0.0)),
    check("Array.at.set: a traced mask", lambda jax: jax.jit(lambda x: x.at[x > 1].set(0.0))(jax.numpy.arange(3.0))),
    check("Array.at.add: a traced mask", lambda jax: jax.jit(lambda x: x.at[x > 1].add(jax.numpy.ones(1)))(jax.numpy.arange(3.0))),
    check("Array.at.apply: twice at one place", lambda jax: jax.numpy.ones(3).at[jax.numpy.array([0, 0, 1])].apply(lambda v: 2 * v)),
    check("Array.at.add: its gradient", lambda jax: jax.grad(lambda x, y: (x.at[1].add(y) ** 2).sum(), (0, 1))(jax.numpy.arange(3.0), 2.0)),
    check("Array.at.set: its gradient", lambda jax: jax.grad(lambda x, y: (x.at[1:].set(y) ** 2).sum(), (0, 1))(jax.numpy.arange(3.0), 2.0)),
    check("Array.at.multiply: under vmap", lambda jax: jax.vmap(lambda x, i: x.at[i].multiply(5.0))(jax.numpy.ones((2, 3)), jax.numpy.array([0, 2]))),
    check("Array.at.set: a wrong mode", lambda jax: jax.numpy.arange(3).at[0].set(1, mode="sometimes")),
    check("Array.at: unindexed", lambda jax: jax.numpy.arange(3).at.set(1)),
]

# --- conversions -----------------------------------------------------------------------------------------------------


def fails(f):
    try:
        return f()
    except Exception as error:
        return type(error).__name__


CONVERSIONS = [
    check("Array.__bool__: one element", lambda jax: [bool(jax.numpy.array(v)) for v in (0.0, 2, True)]),
    check("Array.__bool__: several", lambda jax: bool(jax.numpy.arange(2))),
    check("Array.__bool__: none", lambda jax: fails(lambda: bool(jax.numpy.zeros(0)))),
    check("Array.__int__: and float, complex", lambda jax: [int(jax.numpy.array(2.7)), float(jax.numpy.array(3)), complex(jax.numpy.array(1 + 2j))]),
    check("Array.__float__: of several", lambda jax: float(jax.numpy.arange(2))),
    check("Array.__float__: of one in a list", lambda jax: fails(lambda: float(jax.numpy.ones(1)))),
    check("Array.__complex__: of a float", lambda jax: complex(jax.numpy.array(2.0))),
    check("Array.__index__: in a list", lambda jax: [5, 6, 7][jax.numpy.array(1)]),
    check("Array.__index__: of a float", lambda jax: [5, 6, 7][jax.numpy.array(1.0)]),
    check("Array.__index__: range and hex", lambda jax: [list(range(jax.numpy.array(3))), hex(jax.numpy.array(255))]),
    check("Array.__len__: of a number", lambda jax: len(jax.numpy.array(3))),
    check("Array.__array__: to NumPy", lambda jax: [np.asarray(jax.numpy.arange(3)), np.array(jax.numpy.ones(2), "float64")]),
    check("Array.__array__: bfloat16", lambda jax: np.asarray(jax.numpy.ones(2, "bfloat16"))),
    check("Array.__array__: read only", lambda jax: np.asarray(jax.numpy.arange(3)).flags.writeable),
    check("Array.__array__: with NumPy functions", lambda jax: np.sum(jax.numpy.arange(3))),
    check("Array.__array__: NumPy on the left", lambda jax: np.arange(3) + jax.numpy.arange(3)),
    check("Array.__array_namespace__: sin", lambda jax: jax.numpy.arange(3.0).__array_namespace__().sin(jax.numpy.arange(3.0))),
    check("Array.__array_namespace__: a wrong version", lambda jax: jax.numpy.arange(3.0).__array_namespace__(api_version="1999.1")),
    check("Array.__dlpack__: to NumPy", lambda jax: np.from_dlpack(jax.numpy.arange(3.0))),
    check("Array.__dlpack__: device", lambda jax: tuple(int(part) for part in jax.numpy.arange(3.0).__dlpack_device__())),
    check("numpy.from_dlpack: of NumPy", lambda jax: jax.numpy.from_dlpack(np.arange(3, dtype="float32"))),
    check("Array.__copy__: copies", lambda jax: [copy.copy(jax.numpy.arange(3)), copy.deepcopy(jax.numpy.asarray(2.0))]),
    check("Array.__reduce__: pickled", lambda jax: pickle.loads(pickle.dumps(jax.numpy.arange(3.0)))),
    check("Array.__reduce__: pickled, weak", lambda jax: pickle.loads(pickle.dumps(jax.numpy.asarray(3.0)))),
    check("Array.__reduce__: pickled keys",
          lambda jax: jax.random.normal(pickle.loads(pickle.dumps(jax.random.split(jax.random.key(3))))[1])),
    check("Array.__reduce__: pickled keys of rbg",
          lambda jax: jax.random.key_data(pickle.loads(pickle.dumps(jax.random.key(3, impl="rbg"))))),
    check("Array.__reduce__: pickled bfloat16", lambda jax: pickle.loads(pickle.dumps(jax.numpy.ones((2, 2), "bfloat16")))),
    *[check(f"Array.__array__: the other byte order, {name}",
            lambda jax, f=function, d=dtype: f(jax, np.arange(3).astype(np.dtype(d).newbyteorder())))
      for dtype in ("float32", "int32", "complex64", "uint16")
      for name, function in (("asarray", lambda jax, x: jax.numpy.asarray(x)), ("array", lambda jax, x: jax.numpy.array(x)),
                             ("array with a dtype", lambda jax, x: jax.numpy.array(x, dtype="complex64")),
                             ("a number", lambda jax, x: jax.numpy.asarray(x[1])), ("an operand", lambda jax, x: jax.numpy.arange(3) + x),
                             ("a function", lambda jax, x: jax.numpy.exp(x)), ("jit", lambda jax, x: jax.jit(lambda x: x)(x)),
                             ("device_put", lambda jax, x: jax.device_put(x)), ("in a list", lambda jax, x: jax.numpy.asarray([x, x])),
                             ("grad", lambda jax, x: jax.grad(lambda x: x.sum())(x)))],
    check("Array.__format__: of a number", lambda jax: f"{jax.numpy.array(2.5):.3f} {jax.numpy.array(7):4d} {jax.numpy.float32(0.1)}"),
    check("Array.__format__: of several", lambda jax: fails(lambda: f"{jax.numpy.arange(2):.3f}")),
    check("Array.__hash__: in a set", lambda jax: fails(lambda: {jax.numpy.array(1)})),
    check("Array.__class__: isinstance", lambda jax: [isinstance(jax.numpy.arange(3), jax.Array), isinstance(np.arange(3), jax.Array)]),
    check("Array.__class__: isinstance of a tracer", lambda jax: [(out := []), jax.jit(lambda x: (out.append(isinstance(x, jax.Array)), x)[1])(1.0), out][2]),
    check("Array.__jax_array__: protocol", lambda jax: jax.numpy.asarray(type("Held", (), {"__jax_array__": lambda self: jax.numpy.arange(3.0)})())),
]

TEXTS = [check(f"Array.__repr__: {text}", lambda jax, t=text: [repr(eval(t, {"jnp": jax.numpy, "np": np, "jax": jax})), str(eval(t, {"jnp": jax.numpy, "np": np, "jax": jax}))])
         for text in (
    "jnp.arange(3)", "jnp.arange(3.0)", "jnp.asarray(2.0)", "jnp.asarray(2)", "jnp.float32(0.1)", "jnp.array(True)", "jnp.ones((2, 2), 'bfloat16')",
    "jnp.zeros((0, 3))", "jnp.array([1 + 2j, 0.5])", "jnp.array([jnp.nan, jnp.inf, -1e10])", "jnp.arange(2000)", "jnp.ones((40, 40))", "jnp.array([1e-8, 1.0])",
    "jnp.array([0.0, 0.16666667, 0.5, 0.8333333, 1.0, 1e-3, 2.0])", "jnp.arange(24).reshape(2, 3, 4)", "jnp.array(3, 'uint8')", "jnp.array([], 'int32')", "jax.random.key(3)", "jnp.array([0.1, 123456.789])",
    "jnp.float32(3.4e38)", "jnp.array([True, False])",
)]

CASES = OPERATORS + METHODS + INDEXING + AT + CONVERSIONS + TEXTS
