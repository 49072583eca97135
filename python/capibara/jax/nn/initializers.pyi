"""Types of capibara.jax.nn.initializers. Made by tools/python/make_stubs.py."""
from collections.abc import Sequence

from typing import Protocol

from capibara._core import Array
from capibara._stub_types import Shape
from capibara.jax._mesh import PartitionSpec
from capibara.jax._sharding import Sharding
from capibara.jax.typing import ArrayLike, DTypeLike

class Initializer(Protocol):
    """A function (key, shape, dtype) -> array."""

    def __call__(
        self, key: ArrayLike, shape: Shape, dtype: DTypeLike | None = None, out_sharding: Sharding | PartitionSpec | None = None
    ) -> Array: ...
def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer that fills with a value."""
def delta_orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer of convolution kernels: orthogonal in the middle, zero elsewhere."""
def glorot_normal(in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1, batch_axis: int | Sequence[int] = (), dtype: DTypeLike | None = None) -> Initializer:
    """Truncated normal with variance 1 / average fan."""
def glorot_uniform(in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1, batch_axis: int | Sequence[int] = (), dtype: DTypeLike | None = None) -> Initializer:
    """Uniform with variance 1 / average fan."""
def he_normal(in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1, batch_axis: int | Sequence[int] = (), dtype: DTypeLike | None = None) -> Initializer:
    """Truncated normal with variance 2 / fan in."""
def he_uniform(in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1, batch_axis: int | Sequence[int] = (), dtype: DTypeLike | None = None) -> Initializer:
    """Uniform with variance 2 / fan in."""
def kaiming_normal(in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1, batch_axis: int | Sequence[int] = (), dtype: DTypeLike | None = None) -> Initializer:
    """Truncated normal with variance 2 / fan in: he_normal."""
def kaiming_uniform(in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1, batch_axis: int | Sequence[int] = (), dtype: DTypeLike | None = None) -> Initializer:
    """Uniform with variance 2 / fan in: he_uniform."""
def lecun_normal(in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1, batch_axis: int | Sequence[int] = (), dtype: DTypeLike | None = None) -> Initializer:
    """Truncated normal with variance 1 / fan in."""
def lecun_uniform(in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1, batch_axis: int | Sequence[int] = (), dtype: DTypeLike | None = None) -> Initializer:
    """Uniform with variance 1 / fan in."""
def normal(stddev: ArrayLike = 0.01, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer that draws from the normal distribution with this standard deviation."""
def ones(key: ArrayLike | None, shape: Shape, dtype: DTypeLike | None = None, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Ones, whatever the key."""
def orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer of orthonormal columns, or rows where there are fewer, times scale."""
def truncated_normal(stddev: ArrayLike = 0.01, dtype: DTypeLike | None = None, lower: ArrayLike = -2.0, upper: ArrayLike = 2.0) -> Initializer:
    """An initializer that draws from the normal distribution cut off at lower and upper, then scales."""
def uniform(scale: ArrayLike = 0.01, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer that draws uniformly from [0, scale)."""
def variance_scaling(scale: ArrayLike, mode: str, distribution: str, in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1, batch_axis: int | Sequence[int] = (), dtype: DTypeLike | None = None) -> Initializer:
    """An initializer whose variance is scale divided by the fan that the mode names."""
def xavier_normal(in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1, batch_axis: int | Sequence[int] = (), dtype: DTypeLike | None = None) -> Initializer:
    """Truncated normal with variance 1 / average fan: glorot_normal."""
def xavier_uniform(in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1, batch_axis: int | Sequence[int] = (), dtype: DTypeLike | None = None) -> Initializer:
    """Uniform with variance 1 / average fan: glorot_uniform."""
def zeros(key: ArrayLike | None, shape: Shape, dtype: DTypeLike | None = None, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Zeros, whatever the key."""
