"""Operations on trees of values above arrays, in the form of VJPHiPrimitive."""
from capibara import _lifting
from capibara._types import SymbolicZero, UndefinedPrimal, Zero
from capibara.jax._api import jvp, vmap
from capibara.jax._hi_operations import Operation, batch_arrays, lower
from capibara.jax.core import ShapedArray
from capibara.jax.interpreters import ad
from capibara.jax.interpreters.batching import AxisData
from capibara.jax.tree_util import tree_flatten, tree_leaves, tree_unflatten


def _needed(purpose, methods, doc):
    """A method that subclasses define."""
    def method(self, *_args):
        raise NotImplementedError(f"for {purpose} support, subclass {type(self)} must implement {methods}")
    method.__doc__ = doc
    return method


class VJPHiPrimitive:
    """An operation on trees of values above arrays: a subclass sets in_avals, out_aval and params, and defines `expand` and derivatives."""

    effects = frozenset()

    def __init__(self):
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise AttributeError(f"subclass __init__ should set `self.{name}`")
        kind = type(self)
        if kind.vjp_bwd is not VJPHiPrimitive.vjp_bwd and kind.vjp_bwd_retval is not VJPHiPrimitive.vjp_bwd_retval:
            raise AttributeError(f"{kind.__name__}: define one of `vjp_bwd` and `vjp_bwd_retval`, got both")
        self.in_avals_flat, self.in_tree = tree_flatten(self.in_avals)
        self.out_avals_flat, self.out_tree = tree_flatten(self.out_aval)
        vars(self).update(self.params)
        self.check(*self.in_avals)

    def expand(self, *_):
        """The results, computed by other operations."""
        raise NotImplementedError(f"subclass {type(self)} must implement `expand`")

    vjp_fwd = _needed("grad", "`vjp_fwd`", "(results, residuals) for derivatives in reverse mode.")

    def vjp_bwd(self, residuals, cotangent, /, *accumulators):
        """Adds the cotangents of the arguments to accumulators."""
        values = self.vjp_bwd_retval(residuals, cotangent)
        values = tree_unflatten(self.in_tree, _prefix(values, self.in_avals))
        for accumulator, value in zip(_leaves(accumulators), _leaves(values)):
            if isinstance(accumulator, ad.GradAccum) and value is not None:
                accumulator.accum(value)

    vjp_bwd_retval = _needed("grad", "`vjp_bwd` or `vjp_bwd_retval`", "The cotangents of the arguments.")
    jvp = _needed("jvp", "`jvp`", "(results, tangents) for derivatives in forward mode.")
    lin = _needed("linearize", "`lin` and `linearized`", "(results, residuals) for linearize.")
    linearized = _needed("linearize", "`lin` and `linearized`", "Tangents of the results, from residuals and tangents.")
    transpose = _needed("transpose", "`transpose`", "Adds the cotangents of the linear arguments to accumulators.")

    def batch(self, axis_data, args, dims):
        """(results, their mapped axes) under vmap."""
        out_dim = self.batch_dim_rule(axis_data, dims)
        return vmap(self.expand, in_axes=dims, out_axes=out_dim, axis_size=axis_data.size, axis_name=axis_data.name)(*args), out_dim

    batch_dim_rule = _needed("vmap", "`batch` or `batch_dim_rule`", "The mapped axes of the results, from those of the arguments.")

    def check(self, *_):
        """Raises if the types of the arguments do not fit; subclasses may override it."""

    def __call__(self, *args):
        values, tree = tree_flatten(args)
        if tree != self.in_tree:
            raise TypeError(f"{type(self).__name__}: expected arguments of structure {self.in_tree}, got {tree}")
        return tree_unflatten(self.out_tree, Operation(_TreeRules(self), values).bind(values))

    def __repr__(self):
        return f"{type(self).__name__}[{self.params}]"

    def __hash__(self):
        return hash((type(self).__name__, tuple(self.params.items()), frozenset(self.effects)))

    def __eq__(self, other):
        return type(self) is type(other) and self.params == other.params and self.effects == other.effects


def _leaves(tree):
    return tree_leaves(tree, lambda x: x is None or isinstance(x, (Zero, SymbolicZero, ad.GradAccum)))


def _prefix(values, avals):
    """One value for each leaf of avals, of which the values are a prefix; None is a leaf."""
    def is_leaf(x):
        return x is None or isinstance(x, (Zero, SymbolicZero))
    values = tuple(values) if isinstance(values, list) else values
    found, structure = tree_flatten(values, is_leaf)
    result = []
    for value, part in zip(found, structure.flatten_up_to(avals), strict=True):
        result += [value] * len(tree_leaves(part))
    return result


class _TreeRules:
    """The rules of a VJPHiPrimitive on the leaves of its trees."""

    def __init__(self, primitive):
        self.primitive, self.name = primitive, type(primitive).__name__

    def result_types(self, _):
        return list(self.primitive.out_avals_flat)

    def evaluate(self, args):
        own = self.primitive
        return _checked_leaves(own, own.expand(*tree_unflatten(own.in_tree, args)))

    def jvp_in_checkpoint(self, primals, tangents):
        """The rule for derivatives of functions that are recomputed: forward mode, where there is a rule for it."""
        return self.jvp(primals, tangents, always_forward=True)

    def jvp(self, primals, tangents, always_forward=False):
        own = self.primitive
        primals, tangents = tree_unflatten(own.in_tree, primals), tree_unflatten(own.in_tree, tangents)
        reverse = "lin" if _lifting.mode() == "linearize" and _overrides(own, "lin") else "vjp_fwd"
        if not _overrides(own, "vjp_fwd") and _overrides(own, "lin"):
            reverse = "lin"
        if _overrides(own, "jvp") and (always_forward or _lifting.mode() == "forward" or not _overrides(own, reverse)):
            results, directions = own.jvp(primals, tangents)
            return _checked_leaves(own, results), _leaves(directions)
        nonzero = tree_unflatten(own.in_tree, [not isinstance(tangent, Zero) for tangent in _leaves(tangents)])
        results, residuals, *more = getattr(own, reverse)(nonzero, *primals)
        results = _checked_leaves(own, results)
        given = [tangent for tangent in _leaves(tangents) if not isinstance(tangent, Zero)]
        kept, tree = tree_flatten(residuals)
        rules = _LinearRules(own, reverse, [not isinstance(tangent, Zero) for tangent in _leaves(tangents)], len(kept), tree)
        values = [*kept, *tree_leaves(primals), *given]
        directions = Operation(rules, values).bind(values)
        if more:
            expected = _prefix(more[0], own.out_aval)
            directions = [one if is_nonzero else Zero(kind.to_tangent_aval())
                          for one, is_nonzero, kind in zip(directions, expected, own.out_avals_flat)]
        return results, directions

    def transpose(self, cotangents, args):
        own = self.primitive
        accumulators = [ad.ValAccum(arg.aval) if isinstance(arg, UndefinedPrimal) else arg for arg in args]
        own.transpose(tree_unflatten(own.out_tree, cotangents), *tree_unflatten(own.in_tree, accumulators))
        return [one.value if isinstance(one, ad.ValAccum) else None for one in accumulators]

    def batch(self, size, axis_name, operation, arrays, dims):
        own = self.primitive
        plain = all(isinstance(kind, ShapedArray) for kind in (*own.in_avals_flat, *own.out_avals_flat))
        if plain and _overrides(own, "batch"):
            args, axes = tree_unflatten(own.in_tree, arrays), tree_unflatten(own.in_tree, dims)
            results, out_dims = own.batch(AxisData(axis_name, size), args, axes)
            return _checked_leaves(own, results), tree_leaves(out_dims, lambda x: x is None)
        return batch_arrays(size, axis_name, operation, arrays, dims)


def _overrides(primitive, name):
    return getattr(type(primitive), name) is not getattr(VJPHiPrimitive, name)


def _checked_leaves(primitive, results):
    leaves, tree = tree_flatten(results, lambda x: isinstance(x, Zero))
    if tree != primitive.out_tree:
        raise TypeError(f"{type(primitive).__name__}: expected results of structure {primitive.out_tree}, got {tree}")
    return leaves


class _LinearRules:
    """The derivative of a VJPHiPrimitive at a point: a linear operation on tangents, whose transpose is the rule for cotangents."""

    def __init__(self, primitive, rule, nonzero, kept, tree):
        self.primitive, self.rule, self.nonzero, self.kept, self.tree = primitive, rule, nonzero, kept, tree
        self.name = type(primitive).__name__ + "_linearized"

    def _parts(self, values):
        count = self.kept + len(self.primitive.in_avals_flat)
        return values[:self.kept], values[self.kept:count], values[count:]

    def result_types(self, _):
        return [kind.to_tangent_aval() for kind in self.primitive.out_avals_flat]

    def evaluate(self, values):
        own = self.primitive
        kept, primals, given = self._parts(values)
        given = iter(given)
        tangents = [next(given) if is_nonzero else Zero(kind.to_tangent_aval())
                    for is_nonzero, kind in zip(self.nonzero, own.in_avals_flat)]
        tangents = tree_unflatten(own.in_tree, tangents)
        if self.rule == "lin":
            directions = own.linearized(tree_unflatten(self.tree, kept), *tangents)
        else:
            _, directions = own.jvp(tree_unflatten(own.in_tree, primals), tangents)
        return [ad.instantiate_zeros(one) for one in _leaves(directions)]

    def jvp(self, primals, tangents):
        own = Operation(self, primals)
        own.out_types = self.result_types(None)
        arrays = own.arrays_of(primals)
        directions = []
        for (kind, _), tangent in zip(own.entries, tangents):
            directions += lower(kind.to_tangent_aval(), tangent, self.name)
        out, out_tangents = jvp(own.on_arrays, tuple(arrays), tuple(directions))
        return own.out_raised(out), own.out_raised(out_tangents, [kind.to_tangent_aval() for kind in own.out_types])

    def transpose(self, cotangents, args):
        own = self.primitive
        kept, _, given = self._parts(args)
        accumulators, linear = [], iter(given)
        for is_nonzero, kind in zip(self.nonzero, own.in_avals_flat):
            accumulators.append(ad.ValAccum(kind.to_ct_aval()) if is_nonzero else ad.NullAccum(kind.to_ct_aval()))
        own.vjp_bwd(tree_unflatten(self.tree, kept), tree_unflatten(own.out_tree, cotangents), *tree_unflatten(own.in_tree, accumulators))
        values = [one.value for one, is_nonzero in zip(accumulators, self.nonzero) if is_nonzero]
        return [None] * (self.kept + len(own.in_avals_flat)) + [value for value, _ in zip(values, linear)]

    def batch(self, size, axis_name, operation, arrays, dims):
        return batch_arrays(size, axis_name, operation, arrays, dims)
