"""jax.api_util: helpers of the transforms that libraries use."""
import numpy as np

from capibara import _core
from capibara._modules import explain_missing
from capibara._origins import not_a_prefix
from capibara.jax._programs import describe_function
from capibara.jax.extend.linear_util import WrappedFun


def shaped_abstractify(x):
    """The abstract type of a value, or of an object with a shape and a dtype."""
    if hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, (_core.Array, _core.Ref, np.ndarray, np.generic)):
        return _core.ShapedArray(x.shape, x.dtype, getattr(x, "weak_type", False))
    return _core.type_of(x)


def debug_info(traced_for, fun, args, kwargs, *, static_argnums=(), static_argnames=(), result_paths_thunk=None, **_):
    """Debug information of a function with example arguments, for messages."""
    return describe_function(traced_for, fun, args, kwargs, static_argnums, static_argnames, result_paths_thunk)


def resolve_kwargs(fun, args, kwargs):
    """All arguments of a call by position, defaults filled in; keyword-only arguments have no position."""
    import inspect
    bound = inspect.signature(fun).bind(*args, **kwargs)
    bound.apply_defaults()
    given = [name for name in kwargs if name in bound.kwargs]
    if given:
        raise TypeError(f"resolve_kwargs: keyword arguments could not be resolved to positions: {', '.join(given)}")
    return bound.args


def safe_map(f, *args):
    """map as a list, over sequences of equal length."""
    args = [list(arg) for arg in args]
    if len({len(arg) for arg in args}) > 1:
        raise ValueError(f"safe_map: the arguments have different lengths: {[len(arg) for arg in args]}")
    return list(map(f, *args))


def flatten_axes(name, treedef, axis_tree, *, kws=False, tupled_args=False):
    """Broadcasts a prefix of integers and None to one axis per leaf of a structure."""
    leaves, prefix = _core.tree_flatten(axis_tree, lambda x: x is None)
    full = treedef.unflatten([object() for _ in range(treedef.num_leaves)])
    try:
        parts = prefix.flatten_up_to(full)
    except ValueError:
        if kws:  # the message is about the positional arguments
            full, axis_tree = full[0], axis_tree[0]
        hint = f" {name} that is not a number is a tuple with one entry for each argument." if tupled_args else ""
        raise ValueError(not_a_prefix(name, axis_tree, full) + hint) from None
    return [axis for axis, part in zip(leaves, parts) for _ in _core.tree_leaves(part)]


class _OutTree:
    """The structure of a flattened function's result, known after its first call."""

    def __call__(self):
        if not hasattr(self, "tree"):
            raise AssertionError("the structure of the result is known once the function was called")
        return self.tree


def _flattened(fun, in_tree, call):
    out = _OutTree()

    def flat(*leaves):
        result, out.tree = _core.tree_flatten(call(in_tree.unflatten(leaves)))
        return result

    return WrappedFun(flat, debug_info=fun.debug_info), out


def flatten_fun(fun, in_tree):
    """A wrapped function of (args, kwargs) as one of their leaves, and a callable that returns the structure of its result."""
    return _flattened(fun, in_tree, lambda both: fun.call_wrapped(*both[0], **both[1]))


def flatten_fun_nokwargs(fun, in_tree):
    """The same for a function of positional arguments."""
    return _flattened(fun, in_tree, lambda args: fun.call_wrapped(*args))


def argnums_partial(f, dyn_argnums, args, require_static_args_hashable=True):
    """A wrapped function of the chosen arguments, the others static, and the values of the chosen ones."""
    chosen = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    for position in chosen:
        if not -len(args) <= position < len(args):
            raise ValueError(f"Positional argument indices must be in [-{len(args)}, {len(args)}), got {position}")
    chosen = tuple(position % len(args) for position in chosen)
    if require_static_args_hashable:
        for position, value in enumerate(args):
            if position not in chosen and getattr(type(value), "__hash__", None) is None:
                raise ValueError("Non-hashable static arguments are not supported, as this can lead to unexpected "
                                 f"cache-misses: argument {position} of type {type(value)} is non-hashable.")

    def partial(*values, **kwargs):
        full = list(args)
        for position, value in zip(chosen, values):
            full[position] = value
        return f.call_wrapped(*full, **kwargs)

    return WrappedFun(partial, debug_info=f.debug_info), tuple(args[position] for position in chosen)


def donation_vector(donate_argnums, donate_argnames, in_tree, kws=True):
    """A flag for each leaf of the arguments: True if it is donated."""
    args_tree, kwargs_tree = in_tree.children() if kws else (in_tree, None)
    donated = [(position in donate_argnums, tree) for position, tree in enumerate(args_tree.children())]
    if kwargs_tree is not None:
        donated += [(name in donate_argnames, tree) for name, tree in zip(kwargs_tree.node_data()[1], kwargs_tree.children())]
    return tuple(flag for flag, tree in donated for _ in range(tree.num_leaves))


def rebase_donate_argnums(donate_argnums, static_argnums):
    """Positions of donated arguments after removing the static ones."""
    static, donated = set(static_argnums), sorted(set(donate_argnums))
    if static & set(donated):
        raise ValueError(f"`static_argnums` {sorted(static)} and `donate_argnums` {donated} cannot intersect.")
    return tuple(position - sum(other < position for other in static) for position in donated)


explain_missing(__name__)
