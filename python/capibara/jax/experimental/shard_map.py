"""jax.experimental.shard_map: the older name of jax.shard_map."""
from collections.abc import Callable

from capibara._modules import explain_missing
from capibara.jax import _shard_map
from capibara.jax._mesh import Mesh


def shard_map(f: Callable, mesh: Mesh, in_specs: object, out_specs: object, check_rep: bool = True) -> Callable:
    """Maps a function over the devices of a mesh; `check_rep` is an older name of check_vma."""
    return _shard_map.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)


explain_missing(__name__)
