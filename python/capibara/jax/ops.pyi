"""Types of capibara.jax.ops. Made by tools/python/make_stubs.py."""
from typing import Any

def segment_max(data: Any, segment_ids: Any, num_segments: Any = ..., indices_are_sorted: Any = ..., unique_indices: Any = ..., bucket_size: Any = ..., mode: Any = ..., out_sharding: Any = ...) -> Any:
    """The maxima of the rows with equal segment numbers."""
def segment_min(data: Any, segment_ids: Any, num_segments: Any = ..., indices_are_sorted: Any = ..., unique_indices: Any = ..., bucket_size: Any = ..., mode: Any = ..., out_sharding: Any = ...) -> Any:
    """The minima of the rows with equal segment numbers."""
def segment_prod(data: Any, segment_ids: Any, num_segments: Any = ..., indices_are_sorted: Any = ..., unique_indices: Any = ..., bucket_size: Any = ..., mode: Any = ..., out_sharding: Any = ...) -> Any:
    """The products of the rows with equal segment numbers."""
def segment_sum(data: Any, segment_ids: Any, num_segments: Any = ..., indices_are_sorted: Any = ..., unique_indices: Any = ..., bucket_size: Any = ..., mode: Any = ..., out_sharding: Any = ...) -> Any:
    """The sums of the rows with equal segment numbers."""
