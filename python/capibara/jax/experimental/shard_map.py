"""jax.experimental.shard_map: the older name of jax.shard_map."""
from capibara._modules import explain_missing
from capibara.jax import _shard_map


def shard_map(f, mesh, in_specs, out_specs, check_rep=True):
    """Maps a function over the devices of a mesh; `check_rep` is an older name of check_vma."""
    return _shard_map.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)


explain_missing(__name__)
