"""jax._src.numpy.indexing: x[index] as a function, with a choice of the allowed kinds of index."""
import enum
import operator

from capibara._modules import explain_missing
from capibara.jax import numpy


class IndexingStrategy(enum.Enum):
    """The operations to which an index may be lowered."""

    AUTO = "auto"
    GATHER = "gather"
    SCATTER = "scatter"
    STATIC_SLICE = "static_slice"
    DYNAMIC_SLICE = "dynamic_slice"


def rewriting_take(arr, idx, *, indices_are_sorted=False, unique_indices=False, mode=None, fill_value=None, normalize_indices=True,
                   out_sharding=None, strategy=IndexingStrategy.AUTO):
    """arr[idx]. The core chooses the operations; STATIC_SLICE allows only numbers and slices that are in range."""
    if not isinstance(strategy, IndexingStrategy):
        raise TypeError(f"Expected strategy to be IndexingStrategy; got {strategy}")
    arr = numpy.asarray(arr)
    if strategy is IndexingStrategy.STATIC_SLICE:
        _check_static(arr.shape, idx, mode)
    options = {} if out_sharding is None else {"out_sharding": out_sharding}
    return arr.at[idx].get(indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, mode=mode, fill_value=fill_value,
                           wrap_negative_indices=normalize_indices, **options)


def _check_static(shape, idx, mode):
    idx = idx if isinstance(idx, tuple) else (idx,)
    given = [one for one in idx if one is not None and one is not Ellipsis]
    if len(given) > len(shape):
        raise IndexError(f"Too many indices: array is {len(shape)}-dimensional, but {len(given)} were indexed")
    axis = 0
    for one in idx:
        if one is Ellipsis:
            axis += len(shape) - len(given)
        elif one is not None:
            if not isinstance(one, slice):
                try:
                    place = operator.index(one)
                except TypeError:
                    raise TypeError(f"static_slice: indices must be static scalars or slices. Got {one!r}") from None
                if mode is None and not -shape[axis] <= place < shape[axis]:
                    raise IndexError(f"index {place} out of bounds for axis {axis} with size {shape[axis]}")
            axis += 1


explain_missing(__name__)
