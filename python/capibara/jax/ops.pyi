"""Types of capibara.jax.ops. Made by tools/python/make_stubs.py."""
from capibara._core import Array
from capibara._types import GatherScatterMode
from capibara.jax._mesh import PartitionSpec
from capibara.jax._sharding import Sharding
from capibara.jax.typing import ArrayLike

def segment_max(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None, indices_are_sorted: bool = False, unique_indices: bool = False, bucket_size: int | None = None, mode: str | GatherScatterMode | None = None, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """The maxima of the rows with equal segment numbers."""
def segment_min(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None, indices_are_sorted: bool = False, unique_indices: bool = False, bucket_size: int | None = None, mode: str | GatherScatterMode | None = None, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """The minima of the rows with equal segment numbers."""
def segment_prod(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None, indices_are_sorted: bool = False, unique_indices: bool = False, bucket_size: int | None = None, mode: str | GatherScatterMode | None = None, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """The products of the rows with equal segment numbers."""
def segment_sum(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None, indices_are_sorted: bool = False, unique_indices: bool = False, bucket_size: int | None = None, mode: str | GatherScatterMode | None = None, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """The sums of the rows with equal segment numbers."""
