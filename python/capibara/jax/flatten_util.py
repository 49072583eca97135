"""jax.flatten_util: a tree as one vector."""
import dataclasses
import math
import warnings

from capibara import _core
from capibara._modules import explain_missing
from capibara.jax import numpy as _jnp


def ravel_pytree(pytree):
    """All leaves of a tree in one vector, and the inverse function."""
    leaves, tree = _core.tree_flatten(pytree)
    if not leaves:
        return _jnp.array([]), _Unravel(tree, (), (), None)
    arrays = [_jnp.asarray(leaf) for leaf in leaves]
    common = _jnp.result_type(*arrays)
    vector = _jnp.concatenate([_jnp.ravel(a).astype(common) for a in arrays])
    return vector, _Unravel(tree, tuple(a.dtype for a in arrays), tuple(a.shape for a in arrays), common)


@dataclasses.dataclass(frozen=True)
class _Unravel:
    """Rebuilds a tree from a vector. Instances for equal trees compare equal, so static arguments do not cause retracing."""
    tree: object
    dtypes: tuple
    shapes: tuple
    common: object

    def __call__(self, flat):
        flat = _jnp.asarray(flat)
        if not self.shapes:
            return self.tree.unflatten([])
        sizes = [math.prod(shape) for shape in self.shapes]
        if flat.shape != (sum(sizes),):
            raise TypeError(f"unravel function given array of shape {flat.shape}, but expected shape {(sum(sizes),)}")
        mixed = any(dtype != self.common for dtype in self.dtypes)
        if mixed and flat.dtype != self.common:
            raise TypeError(f"unravel function given array of dtype {flat.dtype}, but expected dtype {self.common}")
        parts, start = [], 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for dtype, shape, size in zip(self.dtypes, self.shapes, sizes):
                part = flat[start:start + size].reshape(shape)
                parts.append(part.astype(dtype) if mixed else part)  # leaves of one dtype get the vector's dtype
                start += size
        return self.tree.unflatten(parts)


explain_missing(__name__)
