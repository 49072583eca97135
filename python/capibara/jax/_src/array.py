"""jax._src.array: arrays from shards on devices."""
from typing import Any

from capibara import _core
from capibara._array_class import Array, ArrayMeta
from capibara._modules import explain_missing
from capibara.jax._joining import (  # noqa: F401
    check_parts,
    make_array_from_callback,
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
)
from capibara.jax._sharding import Shard  # noqa: F401


class _ArrayImplMeta(ArrayMeta):
    """The metaclass of concrete arrays; calling the class assembles an array from its shards."""

    def __instancecheck__(cls, value):
        return isinstance(value, _core.ArrayImpl)

    def __subclasscheck__(cls, other):
        return issubclass(other, _core.ArrayImpl) or other is cls

    def __getattr__(cls, name):
        return getattr(_core.ArrayImpl, name)

    def __call__(cls, aval: Any, sharding: Any, arrays: Any, committed: bool = True, _skip_checks: bool = False) -> Any:
        if not _skip_checks:
            check_parts(tuple(aval.shape), aval.dtype, sharding, arrays)
        return make_array_from_single_device_arrays(aval.shape, sharding, arrays)


class ArrayImpl(Array, metaclass=_ArrayImplMeta):
    """ArrayImpl(aval, sharding, arrays, committed): an array from shards that are on its devices."""


explain_missing(__name__)
