"""Types of arrays made of parts on devices."""
from collections.abc import Callable, Sequence
from capibara._core import Array
from capibara._stub_types import Shape
from capibara.jax._sharding import Sharding
from capibara.jax.typing import ArrayLike, DTypeLike

def make_array_from_callback(
    shape: Shape, sharding: Sharding, data_callback: Callable[[tuple[slice, ...]], ArrayLike], dtype: DTypeLike | None = None
) -> Array:
    """An array whose part on each device is what the callback returns for its slices."""
def make_array_from_single_device_arrays(
    shape: Shape, sharding: Sharding, arrays: Sequence[Array], *, dtype: DTypeLike | None = None
) -> Array:
    """One array of parts that are on its devices. `dtype` is needed where this process has no part, and is that of the parts."""
def make_array_from_process_local_data(sharding: Sharding, local_data: ArrayLike, global_shape: Shape | None = None) -> Array:
    """A tree of arrays of the data that this process has, which are all of it where there is one process."""
