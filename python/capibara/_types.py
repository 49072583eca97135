"""Small Python types around the core: shapes without values, symbolic zeros, dimension numbers, enumerations."""
import enum
from collections import namedtuple

from capibara import _core
from capibara._records import Record
from capibara._shape_struct import ArgInfo, ShapeDtypeStruct, zeros_of  # noqa: F401


def array_from_pickle(*parts):
    """Rebuilds an array from the result of its __reduce__."""
    array = _core.array_from_pickle(*parts)
    narrow = _core.canonical_dtype(array.dtype)
    return array if narrow == array.dtype else array.astype(narrow)


def reduce_keys(keys):
    """The pickled form of an array of PRNG keys: their words and the name of their generator."""
    return keys_from_pickle, tuple(_core.library_function("random", name)(keys) for name in ("key_data", "key_impl"))


def keys_from_pickle(data, impl):
    """Rebuilds an array of PRNG keys from the result of its __reduce__."""
    return _core.library_function("random", "wrap_key_data")(data, impl=impl)


def as_abstract_arrays(tree, with_values=False):
    """Replaces leaves that only have a shape and a dtype, or whose memory was deleted, by arrays that take no memory, for tracing; or by
    zeros, if they are read."""
    leaves, structure = _core.tree_flatten(tree)
    return structure.unflatten([_stand_in(leaf, with_values) for leaf in leaves])


def _stand_in(leaf, with_values):
    if not isinstance(leaf, (ShapeDtypeStruct, _core.ShapedArray)) and not (isinstance(leaf, _core.ArrayImpl) and leaf.is_deleted()):
        return leaf
    sharding = getattr(leaf, "sharding", None)
    # Explicit axes are part of the type.
    is_explicit = hasattr(sharding, "_placement") and getattr(getattr(sharding, "mesh", None), "explicit_axes", ())
    is_extended = leaf.dtype.kind == "V"  # keys, float0 and numbers that NumPy does not have: one width each
    is_empty = is_extended and leaf.dtype.itemsize == 0  # float0
    if not (with_values or is_explicit or is_ref(leaf) or is_empty):
        return _core.array_without_value(_core.ShapedArray(leaf.shape, leaf.dtype if is_extended else _core.canonical_dtype(leaf.dtype)))
    zeros = zeros_of(leaf)
    if is_explicit and sharding.is_fully_addressable:
        zeros = _core.device_put(zeros, sharding._placement)
    return _core.new_ref(zeros) if is_ref(leaf) else zeros


def is_ref(leaf):
    """True for the type of a mutable array."""
    return leaf.is_ref if isinstance(leaf, ShapeDtypeStruct) else isinstance(leaf, _core.ShapedArray) and leaf._is_ref


def with_ref_types(tree):
    """Replaces ShapeDtypeStructs with is_ref=True by the types of mutable arrays."""
    leaves, structure = _core.tree_flatten(tree)
    if not any(isinstance(leaf, ShapeDtypeStruct) and leaf.is_ref for leaf in leaves):
        return tree
    return structure.unflatten([_core.ref_type(_core.ShapedArray(leaf.shape, leaf.dtype, leaf.weak_type))
                                if isinstance(leaf, ShapeDtypeStruct) and leaf.is_ref else leaf for leaf in leaves])


class Zero:
    """A tangent or cotangent known to be zero."""

    def __init__(self, aval):
        self.aval = aval

    def __repr__(self):
        return f"Zero({self.aval})"

    @classmethod
    def from_primal_value(cls, value):
        return cls(_core.as_array(value).aval.to_tangent_aval())

    @property
    def shape(self):
        return self.aval.shape

    @property
    def dtype(self):
        return self.aval.dtype


class SymbolicZero:
    """A zero tangent as passed to custom derivative rules with symbolic_zeros=True; it has the attributes of its type."""

    def __init__(self, aval):
        self.aval = aval

    def __repr__(self):
        return "SymbolicZero"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(f"SymbolicZero has no attribute {name}")
        return getattr(self.aval, name)

    @classmethod
    def from_primal_value(cls, value):
        return cls(_core.as_array(value).aval.to_tangent_aval())


class CustomVJPPrimal(Record):
    """An argument of a forward rule with symbolic_zeros=True: its value, and whether it is differentiated."""

    __slots__ = __match_args__ = ("value", "perturbed")

    def __init__(self, value, perturbed):
        self.value, self.perturbed = value, perturbed


class UndefinedPrimal:
    """A linear operand of an equation that is being transposed."""

    def __init__(self, aval):
        self.aval = aval

    def __repr__(self):
        return f"UndefinedPrimal({self.aval})"


class DropVar:
    """An output of an equation that no one reads."""

    def __init__(self, aval):
        self.aval = aval

    def __repr__(self):
        return "_"


class AttributeTuple(tuple):
    """A list-valued parameter; distinguished from tuples of integers so that it can be converted back."""


GatherDimensionNumbers = namedtuple(
    "GatherDimensionNumbers", "offset_dims, collapsed_slice_dims, start_index_map, operand_batching_dims, start_indices_batching_dims",
    defaults=((), ()))
ScatterDimensionNumbers = namedtuple(
    "ScatterDimensionNumbers", "update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims, operand_batching_dims, "
    "scatter_indices_batching_dims", defaults=((), ()))
ConvDimensionNumbers = namedtuple("ConvDimensionNumbers", "lhs_spec, rhs_spec, out_spec")
_RaggedDotFields = namedtuple("_RaggedDotFields", "dot_dimension_numbers, lhs_ragged_dimensions, rhs_group_dimensions")


class RaggedDotDimensionNumbers(_RaggedDotFields):
    """The contracting dimensions of a ragged dot, and the dimensions of its groups."""

    def __new__(cls, dot_dimension_numbers, lhs_ragged_dimensions, rhs_group_dimensions):
        return super().__new__(cls, tuple(dot_dimension_numbers), tuple(lhs_ragged_dimensions), tuple(rhs_group_dimensions))


def _is_static(dimension):
    """True if a start or size is static."""
    return hasattr(dimension, "__index__") and not isinstance(dimension, _core.Tracer)


class Slice(Record):
    """A window of an array: its start, which may be traced, its size and its stride."""

    __slots__ = __match_args__ = ("start", "size", "stride")

    def __init__(self, start, size, stride=1):
        self.start, self.size, self.stride = start, size, stride
        if self.stride < 0:
            raise ValueError("`stride` must be >= 0.")

    @property
    def is_dynamic_start(self):
        return not _is_static(self.start)

    @property
    def is_dynamic_size(self):
        return not _is_static(self.size)

    def tree_flatten(self):
        dynamic = self.is_dynamic_start, self.is_dynamic_size
        values = self.start, self.size
        children = tuple(value if moves else None for value, moves in zip(values, dynamic))
        return children, (*(None if moves else value for value, moves in zip(values, dynamic)), self.stride)

    @classmethod
    def tree_unflatten(cls, data, children):
        start, size = (fixed if child is None else child for child, fixed in zip(children, data))
        return cls(start, size, data[2])


class _LibraryEnum(enum.Enum):
    """An enumeration whose members have names in the core."""

    @property
    def _library_name(self):
        return self.value


class GatherScatterMode(_LibraryEnum):
    CLIP = "clip"
    FILL_OR_DROP = "fill"
    PROMISE_IN_BOUNDS = "promise_in_bounds"
    ONE_HOT = "one_hot"

    @staticmethod
    def from_any(mode):
        if isinstance(mode, GatherScatterMode):
            return mode
        names = {"clip": "CLIP", "fill": "FILL_OR_DROP", "drop": "FILL_OR_DROP",
                 "promise_in_bounds": "PROMISE_IN_BOUNDS", None: "FILL_OR_DROP"}
        if mode not in names:
            raise ValueError(f"Unknown gather mode {mode!r}")
        return GatherScatterMode[names[mode]]


class Precision(_LibraryEnum):
    DEFAULT = "default"
    HIGH = "high"
    HIGHEST = "highest"

    @classmethod
    def _missing_(cls, value):
        names = {None: "DEFAULT", "fastest": "DEFAULT", "bfloat16": "DEFAULT", "tensorfloat32": "HIGH",
                 "float32": "HIGHEST", "bfloat16_3x": "HIGH"}
        name = names.get(value if value is None or isinstance(value, str) else object)
        return cls[name] if name else None

    def __str__(self):
        return self.name


class RoundingMethod(_LibraryEnum):
    AWAY_FROM_ZERO = "away_from_zero"
    TO_NEAREST_EVEN = "to_nearest_even"


class FftType(enum.IntEnum):
    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3

    @property
    def _library_name(self):
        return self.name.lower()


class AccuracyMode(enum.Enum):
    """The requested accuracy of an elementwise function; every implementation meets the highest level."""

    HIGHEST = 1
    DEFAULT = 2


class Tolerance:
    """The allowed error of an elementwise function's result."""

    def __init__(self, atol=0.0, rtol=0.0, ulps=0):
        if min(atol, rtol, ulps) < 0:
            raise ValueError(f"Tolerance: atol, rtol and ulps must not be negative, got {atol}, {rtol} and {ulps}")
        if not (atol or rtol or ulps):
            raise ValueError("Tolerance: one of atol, rtol and ulps must be given")
        self.atol, self.rtol, self.ulps = atol, rtol, ulps


class RandomAlgorithm(_LibraryEnum):
    RNG_DEFAULT = "rng_default"
    RNG_THREE_FRY = "rng_three_fry"
    RNG_PHILOX = "rng_philox"


class SvdAlgorithm(_LibraryEnum):
    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"

    @property
    def _library_name(self):
        return self.value.lower()


class EighImplementation(_LibraryEnum):
    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class EigImplementation(_LibraryEnum):
    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


DotAlgorithmPreset = _LibraryEnum("DotAlgorithmPreset", {name: name for name in (
    "DEFAULT", "ANY_F8_ANY_F8_F32", "ANY_F8_ANY_F8_F32_FAST_ACCUM", "ANY_F8_ANY_F8_ANY", "ANY_F8_ANY_F8_ANY_FAST_ACCUM",
    "F16_F16_F16", "F16_F16_F32", "BF16_BF16_BF16", "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6",
    "BF16_BF16_F32_X9", "TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64")})


class ResizeMethod(_LibraryEnum):
    NEAREST = "nearest"
    LINEAR = "linear"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    CUBIC = "cubic"
    CUBIC_PYTORCH = "cubic-pytorch"
    AREA = "area"

    @staticmethod
    def from_string(text):
        names = {"nearest": "NEAREST", "linear": "LINEAR", "bilinear": "LINEAR", "trilinear": "LINEAR",
                 "triangle": "LINEAR", "lanczos3": "LANCZOS3", "lanczos5": "LANCZOS5", "cubic": "CUBIC",
                 "bicubic": "CUBIC", "tricubic": "CUBIC"}
        if text not in names:
            raise ValueError(f'Unknown resize method "{text}"')
        return ResizeMethod[names[text]]


class CompiledMemoryStats:
    """The memory of a compiled program on one device, in bytes."""

    _NAMES = ("generated_code", "argument", "output", "alias", "temp", "host_generated_code", "host_argument", "host_output", "host_alias", "host_temp")

    def __init__(self, *sizes):
        *sizes, self.peak_memory_in_bytes = sizes
        for name, size in zip(self._NAMES, sizes):
            setattr(self, f"{name}_size_in_bytes", size)

    def __repr__(self):
        return f"CompiledMemoryStats({', '.join(f'{name}_size_in_bytes=' + str(getattr(self, f'{name}_size_in_bytes')) for name in self._NAMES)})"
