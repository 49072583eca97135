"""jax._src.shard_map: shard_map and smap, and all-gathers outside of them."""
from typing import Any

from capibara import _core
from capibara._modules import explain_missing
from capibara.jax import jit, lax
from capibara.jax._abstract_mesh import get_abstract_mesh
from capibara.jax._explicit import canonical
from capibara.jax._placing import spread
from capibara.jax._shard_map import shard_map, smap  # noqa: F401


def top_level_all_gather(xs: Any, out_sharding: Any, *, multi_dim: bool = False) -> Any:
    """All-gathers arrays over the last mesh axes of split dimensions; the result types are `reduced` over these."""
    mesh = get_abstract_mesh()
    if not mesh.are_all_axes_explicit:
        raise ValueError(f"top_level_all_gather works when all mesh axes of context mesh are explicit. Got {mesh}")
    leaves, structure = _core.tree_flatten(xs)
    targets = spread(out_sharding, xs, "top_level_all_gather out_sharding")
    return structure.unflatten([_gathered(leaf, target, multi_dim) for leaf, target in zip(leaves, targets)])


def _gathered(x, target, multi_dim):
    sharding = canonical(target, "top_level_all_gather")
    if sharding is None:
        raise ValueError(f"out_sharding passed to top_level_all_gather cannot be {target}. It should be a PartitionSpec or NamedSharding.")
    typed = _core.type_of(x)
    if typed.sharding.mesh != sharding.mesh:
        raise ValueError(f"Input sharding mesh {typed.sharding.mesh} should be equal to out_sharding mesh {sharding.mesh}")
    before, after = typed.sharding.spec, sharding.spec
    after = after.update(partitions=(*after.partitions, *(None,) * (typed.ndim - len(after))))
    steps = [(dim, *entries) for dim, entries in enumerate(zip(before.partitions, after.partitions)) if entries[0] != entries[1]]
    if len(steps) > 1 and not multi_dim:
        raise ValueError("multiple dimensions cannot be all_gathered since multi_dim=False passed to `top_level_all_gather`. Got "
                         f"in_spec={before} and out_spec={after}")
    gathers = [(dim, _last_axes(typed, before, after, dim, own, kept)) for dim, own, kept in steps]

    def gather(part):
        for dim, axes in gathers:
            part = lax.all_gather(part, axes, axis=dim, tiled=True, to="reduced")
        return part

    return jit(shard_map(gather, out_specs=after))(x)


def _last_axes(typed, before, after, dim, own, kept):
    """The axes removed from a dimension's entry; the remaining axes must be a prefix of it."""
    if own is None:
        raise ValueError(f"top_level_all_gather doesn't allow input {typed} to be unsharded on dimension {dim} when out_spec={after}.")
    own, kept = (entry if isinstance(entry, tuple) else (entry,) if entry else () for entry in (own, kept))
    if own[:len(kept)] != kept:
        raise ValueError(f"top_level_all_gather maintains `top_level_all_gather(x, ...) == x` property. The in_spec={before} and "
                         f"out_spec={after} don't satisfy this property. Please change your out_spec of array dimension {dim} so "
                         "that it's a prefix of in_spec")
    return own[len(kept):]


explain_missing(__name__)
