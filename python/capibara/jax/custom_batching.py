"""jax.custom_batching: functions with a user-defined rule for vmap."""
import functools

from capibara import _core
from capibara._modules import explain_missing
from capibara.jax import lax as _lax
from capibara.jax.custom_derivatives import positional_arguments


class custom_vmap:
    """A function with a rule for vmap, given by def_vmap: rule(axis_size, in_batched, *args) -> (out, out_batched)."""

    vmap_rule = None

    def __init__(self, fun):
        functools.update_wrapper(self, fun)
        self.fun = fun

    def def_vmap(self, vmap_rule):
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __getattr__(self, name):
        """Forwards definitions of rules to the wrapped function, so that decorators can be stacked."""
        if name in ("defjvp", "defjvps", "defvjp"):
            return getattr(self.fun, name)
        raise AttributeError(f"'custom_vmap' object has no attribute {name!r}")

    def __call__(self, *args, **kwargs):
        if self.vmap_rule is None:
            raise AttributeError(f"No batching rule defined for custom_vmap function {self.__name__} using def_vmap.")
        args = positional_arguments("custom_vmap", self.fun, args, kwargs)
        return _core.custom_vmap(self.fun, self.vmap_rule, getattr(self.fun, "__name__", "fn"), args)


def sequential_vmap(f):
    """A function that vmap runs sequentially, element by element."""
    wrapped = custom_vmap(f)

    @wrapped.def_vmap
    def rule(axis_size, in_batched, *args):
        leaves, tree = _core.tree_flatten(args)
        flags = _core.tree_leaves(list(in_batched))
        mapped = [leaf for leaf, flag in zip(leaves, flags) if flag]

        def one(values):
            values = iter(values)
            return wrapped(*tree.unflatten([next(values) if flag else leaf for leaf, flag in zip(leaves, flags)]))

        out = _lax.map(one, mapped)
        return out, _core.tree_structure(out).unflatten([True] * len(_core.tree_leaves(out)))

    return wrapped


explain_missing(__name__)
