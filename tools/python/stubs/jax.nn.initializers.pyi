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
