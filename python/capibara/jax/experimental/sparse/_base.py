"""What all sparse arrays have."""
import math
from typing import Any

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax import Array


class JAXSparse:
    """The base of sparse arrays: `data` has the kept values, `shape` is that of the whole array."""

    data: Array
    shape: tuple[int, ...]
    nse: int
    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 100  # NumPy leaves operators to this class

    @property
    def ndim(self) -> int:
        """How many dimensions there are."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements the whole array has."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> Any:
        """The dtype of the kept values."""
        return self.data.dtype

    @property
    def T(self) -> Any:
        """The array with its dimensions reversed."""
        return self.transpose()

    def transpose(self, axes=None):
        """The dimensions in another order."""
        raise NotImplementedError(f"{type(self).__name__}.transpose(axes={axes}): use its BCOO form")

    def todense(self) -> Array:
        """The array with all its elements."""
        raise NotImplementedError(f"{type(self).__name__}.todense")

    def block_until_ready(self) -> Any:
        """Waits until the arrays that it is made of are computed."""
        return jax.block_until_ready(self)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            parts = [f"nse={self.nse}", *(f"{what}={getattr(self, what)}" for what in ("n_batch", "n_dense") if getattr(self, what, 0))]
            text = f"{name}({self.dtype}{list(self.shape)}, {', '.join(parts)})"
        except (AttributeError, IndexError, TypeError):  # a tree of something else
            text = f"{name}(<invalid>)"
        return f"{type(self.data).__name__}[{text}]" if isinstance(self.data, jax.core.Tracer) else text


def number_of_diagonal(rows: int, columns: int, k: int) -> int:
    """How many elements the diagonal k of a matrix has."""
    return max(0, min(rows + min(k, 0), columns - max(k, 0)))


def check_matrix(name: str, shape: tuple[int, ...]) -> tuple[int, int]:
    """The shape of a matrix, or an error."""
    if len(shape) != 2:
        raise ValueError(f"{name} must have ndim=2; got shape={tuple(shape)}")
    return shape[0], shape[1]


def promoted(*arrays: Any) -> list[Array]:
    """Arrays in the dtype that they promote to."""
    dtype = jnp.result_type(*arrays)
    return [jnp.asarray(array).astype(dtype) for array in arrays]
