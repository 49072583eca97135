"""Types of small classes around the core: shapes without values, symbolic zeros, dimension numbers, enumerations."""
import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from capibara._core import Array, ShapedArray
from capibara._records import Record
from capibara._shape_struct import ArgInfo as ArgInfo
from capibara._shape_struct import ShapeDtypeStruct as ShapeDtypeStruct
from capibara._shape_struct import zeros_of as zeros_of
from capibara._stub_types import PyTree
from capibara.jax.typing import ArrayLike, DTypeLike

def array_from_pickle(*parts: Any) -> Array: ...
def as_abstract_arrays(tree: PyTree, with_values: bool = False) -> PyTree: ...

class Zero:
    """A tangent or cotangent known to be zero."""

    aval: ShapedArray
    def __init__(self, aval: ShapedArray) -> None: ...
    @classmethod
    def from_primal_value(cls, value: ArrayLike) -> Zero: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...

class SymbolicZero:
    """A zero tangent as passed to custom derivative rules with symbolic_zeros=True; it has the attributes of its type."""

    aval: ShapedArray
    def __init__(self, aval: ShapedArray) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
    @classmethod
    def from_primal_value(cls, value: ArrayLike) -> SymbolicZero: ...

class CustomVJPPrimal(Record):
    """An argument of a forward rule with symbolic_zeros=True: its value, and whether it is differentiated."""

    value: Any
    perturbed: bool
    def __init__(self, value: Any, perturbed: bool) -> None: ...

class UndefinedPrimal:
    """A linear operand of an equation that is being transposed."""

    aval: ShapedArray
    def __init__(self, aval: ShapedArray) -> None: ...

class DropVar:
    """An output of an equation that no one reads."""

    aval: ShapedArray
    def __init__(self, aval: ShapedArray) -> None: ...

class AttributeTuple(tuple[Any, ...]):
    """A list-valued parameter; distinguished from tuples of integers so that it can be converted back."""

class GatherDimensionNumbers(NamedTuple):
    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()

class ScatterDimensionNumbers(NamedTuple):
    update_window_dims: Sequence[int]
    inserted_window_dims: Sequence[int]
    scatter_dims_to_operand_dims: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    scatter_indices_batching_dims: Sequence[int] = ()

class ConvDimensionNumbers(NamedTuple):
    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]

class _RaggedDotFields(NamedTuple):
    dot_dimension_numbers: tuple[Any, ...]
    lhs_ragged_dimensions: tuple[int, ...]
    rhs_group_dimensions: tuple[int, ...]

class RaggedDotDimensionNumbers(_RaggedDotFields):
    """The contracting dimensions of a ragged dot, and the dimensions of its groups."""

    def __new__(
        cls, dot_dimension_numbers: Sequence[Any], lhs_ragged_dimensions: Sequence[int], rhs_group_dimensions: Sequence[int]
    ) -> RaggedDotDimensionNumbers: ...

class Slice(Record):
    """A window of an array: its start, which may be traced, its size and its stride."""

    start: Any
    size: Any
    stride: int
    def __init__(self, start: ArrayLike, size: ArrayLike, stride: int = 1) -> None: ...
    @property
    def is_dynamic_start(self) -> bool: ...
    @property
    def is_dynamic_size(self) -> bool: ...
    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]: ...
    @classmethod
    def tree_unflatten(cls, data: tuple[Any, ...], children: tuple[Any, ...]) -> Slice: ...

class GatherScatterMode(enum.Enum):
    CLIP = "clip"
    FILL_OR_DROP = "fill"
    PROMISE_IN_BOUNDS = "promise_in_bounds"
    ONE_HOT = "one_hot"
    @staticmethod
    def from_any(mode: str | GatherScatterMode | None) -> GatherScatterMode: ...

class Precision(enum.Enum):
    DEFAULT = "default"
    HIGH = "high"
    HIGHEST = "highest"

class RoundingMethod(enum.Enum):
    AWAY_FROM_ZERO = "away_from_zero"
    TO_NEAREST_EVEN = "to_nearest_even"

class FftType(enum.IntEnum):
    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3

class AccuracyMode(enum.Enum):
    """The requested accuracy of an elementwise function; every implementation meets the highest level."""

    HIGHEST = 1
    DEFAULT = 2

class Tolerance:
    """The allowed error of an elementwise function's result."""

    atol: float
    rtol: float
    ulps: int
    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0) -> None: ...

class RandomAlgorithm(enum.Enum):
    RNG_DEFAULT = "rng_default"
    RNG_THREE_FRY = "rng_three_fry"
    RNG_PHILOX = "rng_philox"

class SvdAlgorithm(enum.Enum):
    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"

class EighImplementation(enum.Enum):
    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"

class EigImplementation(enum.Enum):
    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"

class DotAlgorithmPreset(enum.Enum):
    DEFAULT = "DEFAULT"
    ANY_F8_ANY_F8_F32 = "ANY_F8_ANY_F8_F32"
    ANY_F8_ANY_F8_F32_FAST_ACCUM = "ANY_F8_ANY_F8_F32_FAST_ACCUM"
    ANY_F8_ANY_F8_ANY = "ANY_F8_ANY_F8_ANY"
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = "ANY_F8_ANY_F8_ANY_FAST_ACCUM"
    F16_F16_F16 = "F16_F16_F16"
    F16_F16_F32 = "F16_F16_F32"
    BF16_BF16_BF16 = "BF16_BF16_BF16"
    BF16_BF16_F32 = "BF16_BF16_F32"
    BF16_BF16_F32_X3 = "BF16_BF16_F32_X3"
    BF16_BF16_F32_X6 = "BF16_BF16_F32_X6"
    BF16_BF16_F32_X9 = "BF16_BF16_F32_X9"
    TF32_TF32_F32 = "TF32_TF32_F32"
    TF32_TF32_F32_X3 = "TF32_TF32_F32_X3"
    F32_F32_F32 = "F32_F32_F32"
    F64_F64_F64 = "F64_F64_F64"

class ResizeMethod(enum.Enum):
    NEAREST = "nearest"
    LINEAR = "linear"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    CUBIC = "cubic"
    CUBIC_PYTORCH = "cubic-pytorch"
    AREA = "area"
    @staticmethod
    def from_string(text: str) -> ResizeMethod: ...

class CompiledMemoryStats:
    """The memory of a compiled program on one device, in bytes."""

    generated_code_size_in_bytes: int
    argument_size_in_bytes: int
    output_size_in_bytes: int
    alias_size_in_bytes: int
    temp_size_in_bytes: int
    host_generated_code_size_in_bytes: int
    host_argument_size_in_bytes: int
    host_output_size_in_bytes: int
    host_alias_size_in_bytes: int
    host_temp_size_in_bytes: int
    peak_memory_in_bytes: int
    def __init__(self, *sizes: int) -> None: ...
