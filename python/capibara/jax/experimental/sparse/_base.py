"""The common base of all sparse arrays."""
import math
from typing import Any

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax import Array


class JAXSparse:
    """The base class of sparse arrays: `data` holds the stored values, `shape` is that of the whole array."""

    data: Array
    shape: tuple[int, ...]
    nse: int
    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 100  # NumPy leaves operators to this class

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements of the whole array."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> Any:
        """The dtype of the stored values."""
        return self.data.dtype

    @property
    def T(self) -> Any:
        """The array with its dimensions reversed."""
        return self.transpose()

    def transpose(self, axes=None):
        """The array with permuted dimensions."""
        raise NotImplementedError(f"{type(self).__name__}.transpose(axes={axes}): use its BCOO form")

    def todense(self) -> Array:
        """The dense array."""
        raise NotImplementedError(f"{type(self).__name__}.todense")

    def block_until_ready(self) -> Any:
        """Waits until the buffers are computed."""
        return jax.block_until_ready(self)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            parts = [f"nse={self.nse}", *(f"{what}={getattr(self, what)}" for what in ("n_batch", "n_dense") if getattr(self, what, 0))]
            text = f"{name}({self.dtype}{list(self.shape)}, {', '.join(parts)})"
        except (AttributeError, IndexError, TypeError):  # a tree with other leaves
            text = f"{name}(<invalid>)"
        return f"{type(self.data).__name__}[{text}]" if isinstance(self.data, jax.core.Tracer) else text


def number_of_diagonal(rows: int, columns: int, k: int) -> int:
    """The length of the diagonal k of a matrix."""
    return max(0, min(rows + min(k, 0), columns - max(k, 0)))


def check_matrix(name: str, shape: tuple[int, ...]) -> tuple[int, int]:
    """The shape if it is that of a matrix; otherwise raises."""
    if len(shape) != 2:
        raise ValueError(f"{name} must have ndim=2; got shape={tuple(shape)}")
    return shape[0], shape[1]


def promoted(*arrays: Any) -> list[Array]:
    """Arrays converted to their promoted dtype."""
    dtype = jnp.result_type(*arrays)
    return [jnp.asarray(array).astype(dtype) for array in arrays]
