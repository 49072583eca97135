"""jax.flatten_util: a tree as one vector."""
import warnings

from capibara import _core
from capibara._modules import explain_missing


def ravel_pytree(pytree):
    """All leaves of a tree in one vector, and the function back."""
    import capibara.jax.numpy as jnp
    leaves, tree = _core.tree_flatten(pytree)
    if not leaves:
        return jnp.array([]), lambda _: tree.unflatten([])
    arrays = [jnp.asarray(leaf) for leaf in leaves]
    dtypes, shapes, sizes = [a.dtype for a in arrays], [a.shape for a in arrays], [a.size for a in arrays]
    common = jnp.result_type(*arrays)
    vector = jnp.concatenate([jnp.ravel(a).astype(common) for a in arrays])
    total = sum(sizes)

    def unravel(flat):
        flat = jnp.asarray(flat)
        if flat.shape != (total,):
            raise TypeError(f"unravel function given array of shape {flat.shape}, but expected shape {(total,)}")
        if flat.dtype != common:
            if all(d == common for d in dtypes):
                raise TypeError(f"unravel function given array of dtype {flat.dtype}, but expected dtype {common}")
            raise TypeError(f"unravel function given array of dtype {flat.dtype}, but expected dtype {common}")
        parts, start = [], 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for dtype, shape, size in zip(dtypes, shapes, sizes):
                parts.append(flat[start:start + size].reshape(shape).astype(dtype))
                start += size
        return tree.unflatten(parts)

    return vector, unravel


explain_missing(__name__)
