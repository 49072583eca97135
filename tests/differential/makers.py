"""Makers of differential cases: deterministic NumPy arrays, hard values, and the two forms of a case."""

import ast
import functools
import hashlib
import inspect
import re
import sys
import threading
import types
import zlib
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

__all__ = [
    "np", "ml_dtypes", "case", "check", "lib", "key", "raw", "array", "zeros", "full", "positive_definite", "bf16_from",
    "f16", "f32", "f64", "bf16", "f8", "c64", "c128", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "b1",
    "HARD16", "HARD32", "HARD64", "HARDBF16", "HARDC64", "HARD_I32", "HARD_U8", "HARD_B1", "UNIT32", "POSITIVE32",
]

# --- arrays ----------------------------------------------------------------------------------------------------------

_loading = threading.Lock()  # families load in threads, and `_made` belongs to one of them at a time
_made = 0  # arrays made since the last case, so that two equal makers in one call give different values
_typed = {}  # id of an array -> the array and the maker call that gives it, for the printed call


def _remember(value, text):
    value.setflags(write=False)
    _typed[id(value)] = (value, text)
    return value


def _maker(name, dtype, kind):
    dtype = np.dtype(dtype)

    def make(*shape, low=None, high=None, seed=None):
        """Values of a fixed pseudo-random sequence; `low` <= value < `high`, of a kind that suits the dtype."""
        global _made
        if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
            shape = tuple(shape[0])
        number = _made if seed is None else seed
        _made += 1
        generator = np.random.default_rng(zlib.crc32(f"{name}{shape}{low}{high}{number}".encode()))
        if kind == "b":
            values = generator.random(shape) < 0.5
        elif kind in "iu":
            lowest = (-5 if kind == "i" else 0) if low is None else low
            values = generator.integers(lowest, (10 if high is None else high), shape)
        else:
            lowest, highest = (-2.0 if low is None else low), (2.0 if high is None else high)
            values = generator.uniform(lowest, highest, shape)
            if kind == "c":
                values = values + 1j * generator.uniform(lowest, highest, shape)
        options = [f"{word}={value!r}" for word, value in (("low", low), ("high", high), ("seed", seed)) if value is not None]
        return _remember(np.asarray(values).astype(dtype), f"{name}({', '.join([*map(str, shape), *options])})")

    make.__name__ = name
    return make


f16 = _maker("f16", np.float16, "f")
f32 = _maker("f32", np.float32, "f")
f64 = _maker("f64", np.float64, "f")
bf16 = _maker("bf16", ml_dtypes.bfloat16, "f")
f8 = _maker("f8", ml_dtypes.float8_e4m3fn, "f")
c64 = _maker("c64", np.complex64, "c")
c128 = _maker("c128", np.complex128, "c")
i8 = _maker("i8", np.int8, "i")
i16 = _maker("i16", np.int16, "i")
i32 = _maker("i32", np.int32, "i")
i64 = _maker("i64", np.int64, "i")
u8 = _maker("u8", np.uint8, "u")
u16 = _maker("u16", np.uint16, "u")
u32 = _maker("u32", np.uint32, "u")
u64 = _maker("u64", np.uint64, "u")
b1 = _maker("b1", np.bool_, "b")


def array(values, dtype=None):
    """The given values, float32 and int32 for Python numbers, traced like the arrays of the makers."""
    made = np.array(values, dtype)
    if dtype is None:
        made = made.astype({"f": np.float32, "i": np.int32, "c": np.complex64}.get(made.dtype.kind, made.dtype))
    return made


def bf16_from(values):
    return np.array(values, np.float32).astype(ml_dtypes.bfloat16)


def zeros(shape, dtype=np.float32):
    return np.zeros(shape, dtype)


def full(shape, value, dtype=np.float32):
    return np.full(shape, value, dtype)


def positive_definite(size, dtype=np.float32, batch=()):
    """Symmetric (Hermitian) matrices with eigenvalues well above zero."""
    generator = np.random.default_rng(size)
    factor = generator.uniform(-1, 1, (*batch, size, size))
    if np.dtype(dtype).kind == "c":
        factor = factor + 1j * generator.uniform(-1, 1, factor.shape)
    # Without BLAS, whose last digits depend on where memory happens to be: a case is known by the bytes of its arguments.
    product = (factor[..., :, None, :] * factor.conj()[..., None, :, :]).sum(-1)
    return (product + size * np.eye(size)).astype(dtype)


def _hard_floats(dtype):
    limits = ml_dtypes.finfo(dtype) if dtype is ml_dtypes.bfloat16 else np.finfo(dtype)
    values = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -7.25, 100.0,
              float(limits.max), float(limits.min), float(limits.tiny), float(limits.eps)]
    return np.array(values, np.float64).astype(dtype)


HARD16 = _remember(_hard_floats(np.float16), "HARD16")
HARD32 = _remember(_hard_floats(np.float32), "HARD32")
HARD64 = _remember(_hard_floats(np.float64), "HARD64")
HARDBF16 = _remember(_hard_floats(ml_dtypes.bfloat16), "HARDBF16")
HARDC64 = _remember(np.array([0, 1, -1, 1j, -1j, 1 + 1j, -2.5 + 0.5j, complex(np.inf, 0), complex(0, np.nan)], np.complex64), "HARDC64")
HARD_I32 = _remember(np.array([0, 1, -1, 2, -2, 3, 7, 31, 32, 2**31 - 1, -2**31], np.int32), "HARD_I32")
HARD_U8 = _remember(np.array([0, 1, 2, 127, 128, 254, 255], np.uint8), "HARD_U8")
HARD_B1 = _remember(np.array([False, True, True, False]), "HARD_B1")
UNIT32 = _remember(np.array([0.0, 1e-6, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0], np.float32), "UNIT32")
POSITIVE32 = _remember(np.array([1e-6, 0.1, 0.5, 1.0, 1.5, 2.0, 3.7, 10.0, 150.0], np.float32), "POSITIVE32")


# --- arguments that need the library ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lib:
    """An argument made by `make(jax)`, where jax is the module under test; never traced."""

    make: object


@dataclass(frozen=True)
class Key:
    """A random key; traced under jit, split in two under vmap."""

    seed: int
    kind: str | None = None


@dataclass(frozen=True)
class Raw:
    """A NumPy array that is handed over as it is, not made an array of the library first, and never traced."""

    value: object


def lib(make):
    return Lib(make)


def key(seed=0, kind=None):
    return Key(seed, kind)


def raw(value):
    return Raw(value)


# --- cases -----------------------------------------------------------------------------------------------------------


@dataclass
class Case:
    """One call: `name` of a function with arguments, or a check: a label with a function of the library."""

    name: str
    args: tuple = ()
    kwargs: dict = field(default_factory=dict)
    function: object = None  # of a check
    tolerance: float | None = None
    modes: dict = field(default_factory=dict)  # jit, vmap, grad -> asked for (True) or refused (False)
    config: dict = field(default_factory=dict)
    skip: str = ""

    @property
    def covers(self):
        """The names of the library that the case speaks for; a label `lax.scan, jit: words` names two."""
        if self.function is None:
            return [self.name]
        named = re.match(r"([\w.]+(?:, [\w.]+)*): ", self.name)
        return named.group(1).split(", ") if named else []

    @property
    def module(self):
        return (self.covers[0].rpartition(".")[0] or "jax") if self.covers else "checks"

    @functools.cached_property
    def text(self):
        """The call as it would be typed."""
        if self.function is not None:
            return f"{self.name}: {typed(self.function)}"
        words = [typed(value) for value in self.args] + [f"{word}={typed(value)}" for word, value in self.kwargs.items()]
        flags = "".join(f"  [{flag}={value!r}]" for flag, value in self.config.items())
        return f"jax.{self.name}({', '.join(words)}){flags}"

    @functools.cached_property
    def identity(self):
        """A digest of all that decides the result, under which results of jax are kept."""
        digest = hashlib.sha256()
        absorb(digest, (self.name, self.args, self.kwargs, self.function, self.config))
        return digest.hexdigest()[:32]


def case(name, *args, tolerance=None, transforms=None, jit=None, vmap=None, grad=None, x64=False, config=None, skip="", **kwargs):
    """A call of the library's function `name`. NumPy arrays in the arguments are traced, all else is static.

    The first working case of each function also runs under jit, vmap and grad; `transforms=True` asks for all three
    and `jit=`, `vmap=`, `grad=` for (or against) one. `x64=True` runs the case with 64 bit types enabled, `config`
    with further flags. A keyword of the function that is also an option here is given in a dict: `kwargs={"x64": 1}`.
    """
    global _made
    _made = 0
    modes = {mode: expected for mode, expected in (("jit", jit), ("vmap", vmap), ("grad", grad)) if expected is not None}
    if transforms is not None:
        modes = {"jit": transforms, "vmap": transforms, "grad": transforms} | modes
    kwargs |= kwargs.pop("kwargs", {})
    flags = dict(config or {}) | ({"jax_enable_x64": True} if x64 else {})
    return Case(name, args, kwargs, None, tolerance, modes, flags, skip)


def check(label, function, tolerance=None, x64=False, config=None, skip=""):
    """Any expression: `function(jax)` is evaluated with both libraries and compared.

    A label of the form `lax.scan: words` counts for lax.scan.
    """
    global _made
    _made = 0
    flags = dict(config or {}) | ({"jax_enable_x64": True} if x64 else {})
    return Case(label, (), {}, function, tolerance, {}, flags, skip)


def schur_facts(jax, form, vectors):
    """What a Schur form determines: the phases of its vectors are free, and so are those beside its diagonal."""
    numpy = jax.numpy
    adjoint = numpy.conj(numpy.swapaxes(vectors, -1, -2))
    below = numpy.tril(form, -1 if numpy.iscomplexobj(form) else -2)
    return [form.shape, str(form.dtype), vectors.shape, str(vectors.dtype), vectors @ form @ adjoint, adjoint @ vectors, below]


def schur_value_facts(jax, form):
    """The same of a form without its vectors: the sizes of the eigenvalues, and of the whole."""
    numpy = jax.numpy
    sizes = numpy.sort(numpy.abs(numpy.diagonal(form, axis1=-2, axis2=-1)), axis=-1)
    return [form.shape, str(form.dtype), sizes, numpy.sqrt((numpy.abs(form) ** 2).sum((-2, -1))), numpy.tril(form, -1)]


# --- texts and digests -----------------------------------------------------------------------------------------------


def typed(value):
    """The Python text of an argument."""
    if isinstance(value, np.ndarray):
        if id(value) in _typed:
            return _typed[id(value)][1]
        if value.size > 24:
            return f"<{value.dtype}{list(value.shape)}>"
        listed = value.tolist() if value.dtype.kind in "biufc" else value.astype(np.float32).tolist()
        return f"np.array({listed}, {str(value.dtype)!r})".replace("nan", "np.nan").replace("inf", "np.inf")
    if isinstance(value, Raw):
        return typed(value.value)
    if isinstance(value, Key):
        return f"jax.random.key({value.seed}{f', impl={value.kind!r}' if value.kind else ''})"
    if isinstance(value, Lib):
        source = typed(value.make)
        return source.removeprefix("lambda jax: ")
    if type(value) in (list, tuple):
        inner = ", ".join(map(typed, value)) + ("," if type(value) is tuple and len(value) == 1 else "")
        return f"[{inner}]" if type(value) is list else f"({inner})"
    if type(value) is dict:
        return "{" + ", ".join(f"{typed(word)}: {typed(inner)}" for word, inner in value.items()) + "}"
    if isinstance(value, type):
        return f"np.{value.__name__}" if issubclass(value, np.generic) else value.__name__
    if isinstance(value, types.FunctionType):
        return _source(value)
    return repr(value)


@functools.lru_cache(maxsize=None)
def _parsed(filename):
    with open(filename) as file:
        text = file.read()
    return text, [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Lambda, ast.FunctionDef))]


def _source(function):
    code = function.__code__
    try:
        text, nodes = _parsed(code.co_filename)
    except (OSError, SyntaxError):
        return function.__name__
    spans = [position for position in code.co_positions() if position[0] and position[0] >= code.co_firstlineno and position[2]]
    line, column = (spans[-1][0], spans[-1][2]) if spans else (code.co_firstlineno, 0)
    holders = [node for node in nodes if isinstance(node, ast.Lambda) == (function.__name__ == "<lambda>")
               and (node.lineno, node.col_offset) <= (line, column) <= (node.end_lineno, node.end_col_offset)]
    if not holders:
        return function.__name__
    source = ast.get_source_segment(text, max(holders, key=lambda node: (node.lineno, node.col_offset)))
    return " ".join(source.split()) if function.__name__ == "<lambda>" else source


def absorb(digest, value, seen=()):
    """Adds a value of any kind to a digest; functions by their code and what it refers to.

    But for `_made`, which changes while another family is loaded.
    """
    def add(*texts):
        for text in texts:
            digest.update(str(text).encode() + b"\0")

    if isinstance(value, np.ndarray):
        add("array", value.dtype, value.shape)
        digest.update(value.tobytes())
    elif isinstance(value, (list, tuple)):
        add(type(value).__name__, len(value))
        for inner in value:
            absorb(digest, inner, seen)
    elif isinstance(value, (set, frozenset)):
        add("set", sorted(map(repr, value)))
    elif isinstance(value, dict):
        add("dict", len(value))
        for word, inner in value.items():
            absorb(digest, word, seen)
            absorb(digest, inner, seen)
    elif isinstance(value, (Lib, Raw, Key)):
        add(type(value).__name__)
        absorb(digest, tuple(vars(value).values()), seen)
    elif isinstance(value, types.CodeType):
        add("code", value.co_code.hex(), value.co_names, value.co_varnames)
        absorb(digest, value.co_consts, seen)
    elif isinstance(value, types.FunctionType):
        if value in seen:
            return
        seen = (*seen, value)
        absorb(digest, (value.__code__, value.__defaults__, value.__kwdefaults__), seen)
        for cell in value.__closure__ or ():
            try:
                absorb(digest, cell.cell_contents, seen)
            except ValueError:  # a cell that is still empty
                add("empty")
        for name in sorted(_all_names(value.__code__)):
            reached = value.__globals__.get(name)
            if isinstance(reached, (types.FunctionType, np.ndarray, int, float, str, tuple, list, dict)) and name not in ("CASES", "_made"):
                absorb(digest, (name, reached), seen)
            elif isinstance(reached, type) and reached.__module__ == value.__module__:
                try:
                    add(name, inspect.getsource(reached))
                except OSError:  # a class made by a call, as of a named tuple
                    add(name, getattr(reached, "_fields", ()))
    elif isinstance(value, (type, types.ModuleType, types.BuiltinFunctionType, np.ufunc)):
        add(getattr(value, "__module__", ""), value.__name__)
    elif isinstance(value, functools.partial):
        absorb(digest, ("partial", value.func, value.args, value.keywords), seen)
    else:
        add(type(value).__name__, value if "object at 0x" not in repr(value) else type(value).__name__)


def _all_names(code):
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _all_names(constant)
    return names


def load(path):
    """The cases of a file, in their order."""
    global _made
    module = types.ModuleType(f"cases_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    with _loading:
        _made = 0
        exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
    return list(module.CASES)
