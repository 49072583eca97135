"""Types of the functions that assemble arrays from shards."""
from collections.abc import Callable, Sequence
from capibara._core import Array
from capibara._stub_types import Shape
from capibara.jax._sharding import Sharding
from capibara.jax.typing import ArrayLike, DTypeLike

def make_array_from_callback(
    shape: Shape, sharding: Sharding, data_callback: Callable[[tuple[slice, ...]], ArrayLike], dtype: DTypeLike | None = None
) -> Array:
    """An array whose shard on each device is the callback's result for its slices."""
def make_array_from_single_device_arrays(
    shape: Shape, sharding: Sharding, arrays: Sequence[Array], *, dtype: DTypeLike | None = None
) -> Array:
    """One array from shards on its devices. `dtype`, that of the shards, is required if this process has no shard."""
def make_array_from_process_local_data(sharding: Sharding, local_data: ArrayLike, global_shape: Shape | None = None) -> Array:
    """A tree of arrays from this process's part of the data, which is all of it for a single process."""
