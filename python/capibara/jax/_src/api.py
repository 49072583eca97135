"""jax._src.api: the transforms of jax, and arrays with one element per device."""
from collections.abc import Sequence
from typing import Any

import numpy as np

from capibara import _core
from capibara._modules import explain_missing
from capibara.jax import device_put, tree_util, typeof
from capibara.jax import numpy as jnp
from capibara.jax._api import *  # noqa: F401,F403
from capibara.jax._api import grad, jit, jvp, linearize, vjp, vmap  # noqa: F401
from capibara.jax._mesh import Mesh, PartitionSpec
from capibara.jax._sharding import NamedSharding


def _over(devices, name):
    return NamedSharding(Mesh(np.array(devices, dtype=object), (name,)), PartitionSpec(name))


def device_put_sharded(shards: Any, devices: Any) -> Any:
    """Stacks trees of arrays, one per device, to a tree of arrays whose elements are on these devices."""
    if not isinstance(shards, Sequence):
        raise TypeError(f"device_put_sharded `shards` input must be a sequence; got {type(shards)}")
    if len(shards) != len(devices):
        raise ValueError(f"len(shards) = {len(shards)} must equal len(devices) = {len(devices)}.")

    def stacked(*parts):
        types = [typeof(part) for part in parts]
        for one, other in zip(types, types[1:]):
            if one != other:
                raise ValueError(f"the shards passed to device_put_sharded must have consistent shape and dtype, but got {one} and "
                                 f"{other}.")
        return device_put(jnp.stack([_core.as_array(part) for part in parts]), _over(devices, "_device_put_sharded"))

    return tree_util.tree_map(stacked, *shards)


def device_put_replicated(x: Any, devices: Any) -> Any:
    """Stacks copies of each array of a tree, one on each device."""
    if not isinstance(devices, Sequence) or not devices:
        raise ValueError(f"`devices` argument to `device_put_replicated must be a non-empty sequence, got {devices}")
    sharding = _over(devices, "_device_put_replicated")
    return tree_util.tree_map(lambda leaf: device_put(jnp.stack([_core.as_array(leaf)] * len(devices)), sharding), x)


explain_missing(__name__)
