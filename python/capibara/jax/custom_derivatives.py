"""Functions with user-defined derivative rules."""
import functools

from capibara import _core, _lifting, _origins, _tracebacks
from capibara._modules import explain_missing
from capibara.jax._linear_call import linear_call  # noqa: F401
from capibara._types import CustomVJPPrimal, SymbolicZero


def positional_arguments(kind, fun, args, kwargs):
    """Arguments by position, defaults filled in, as rules receive them; `kind` is the decorator's name, for errors."""
    import inspect
    if isinstance(fun, functools.partial):  # its bound arguments are not checked
        if kwargs:
            raise _unresolved(kind, fun, f"The following keyword arguments could not be resolved to positions: {', '.join(kwargs)}")
        return tuple(args)
    try:
        signature = inspect.signature(fun)
    except (ValueError, TypeError):
        if kwargs:
            raise
        return tuple(args)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise _unresolved(kind, fun, error) from None
    bound.apply_defaults()
    left = [name for name in bound.kwargs if name in kwargs]
    if left:
        raise _unresolved(kind, fun, f"The following keyword arguments could not be resolved to positions: {', '.join(left)}")
    return bound.args


def _unresolved(kind, fun, why):
    name = getattr(fun, "__name__", repr(fun))
    return TypeError(f"The input arguments to the {kind}-decorated function {name} could not be put in the order of its parameters:\n{why}")


def _positions(nondiff_argnums, nondiff_argnames, fun):
    positions = [nondiff_argnums] if isinstance(nondiff_argnums, int) else list(nondiff_argnums)
    if nondiff_argnames:
        import inspect
        names = list(inspect.signature(fun).parameters)
        given = (nondiff_argnames,) if isinstance(nondiff_argnames, str) else nondiff_argnames
        positions += [names.index(name) for name in given]
    return tuple(positions)


class _CustomFunction:
    def __init__(self, fun, nondiff_argnums=(), nondiff_argnames=()):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = _positions(nondiff_argnums, nondiff_argnames, fun)

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name):
        """Forwards definitions of rules to the wrapped function, so that decorators can be stacked."""
        if name in ("defjvp", "defjvps", "defvjp", "def_vmap"):
            return getattr(self.fun, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _split(self, args):
        """(differentiated arguments, other arguments, the function of the former)."""
        static = sorted({n % len(args) for n in self.nondiff_argnums}) if args else []
        if not static:
            return args, (), self.fun
        dynamic = tuple(value for i, value in enumerate(args) if i not in static)

        def of_dynamic(*values):
            values = iter(values)
            return self.fun(*[args[i] if i in static else next(values) for i in range(len(args))])

        of_dynamic.__name__ = getattr(self.fun, "__name__", "fn")
        return dynamic, tuple(args[i] for i in static), of_dynamic


class custom_jvp(_CustomFunction):
    """A function with a rule for its derivative in forward mode, given by defjvp or defjvps."""

    jvp, symbolic_zeros = None, False

    def defjvp(self, jvp, symbolic_zeros=False):
        self.jvp, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *jvps):
        def jvp(primals, tangents):
            result = self(*primals)
            terms = [rule(tangent, result, *primals) for rule, tangent in zip(jvps, tangents) if rule is not None]
            if not terms:
                total = _core.tree_structure(result).unflatten(
                    [_core.library_function("numpy", "zeros_like")(leaf) for leaf in _core.tree_leaves(result)])
            else:
                total = functools.reduce(_add_trees, terms)
            return result, total

        self.defjvp(jvp)

    def __call__(self, *args, **kwargs):
        if self.jvp is None:
            raise AttributeError(f"No JVP defined for custom_jvp function {self.__name__} using defjvp.")
        args = positional_arguments("custom_jvp", self.fun, args, kwargs)
        dynamic, static, fun = self._split(args)
        rule = self.jvp if not static else functools.partial(self.jvp, *static)
        return _core.custom_jvp(fun, rule, getattr(self.fun, "__name__", "fn"), dynamic, self.symbolic_zeros)


def _add_trees(a, b):
    leaves, tree = _core.tree_flatten(a)
    return tree.unflatten([x + y for x, y in zip(leaves, _core.tree_leaves(b))])


class custom_vjp(_CustomFunction):
    """A function with rules for its derivative in reverse mode, given by defvjp."""

    fwd = bwd = None
    symbolic_zeros = optimize_remat = False

    def defvjp(self, fwd, bwd, symbolic_zeros=False, optimize_remat=False):
        if symbolic_zeros and optimize_remat:
            raise NotImplementedError("custom_vjp: symbolic_zeros and optimize_remat cannot both be set")
        self.fwd, self.bwd, self.symbolic_zeros, self.optimize_remat = fwd, bwd, symbolic_zeros, optimize_remat

    def __call__(self, *args, **kwargs):
        if self.fwd is None or self.bwd is None:
            raise AttributeError(f"No VJP defined for custom_vjp function {self.__name__} using defvjp.")
        args = positional_arguments("custom_vjp", self.fun, args, kwargs)
        dynamic, static, fun = self._split(args)
        fwd, bwd = self.fwd, self.bwd
        if static:
            _refuse_tracers(static)
            places = sorted({n % len(args) for n in self.nondiff_argnums})

            def fwd(*values):
                values = iter(values)
                return self.fwd(*[args[i] if i in places else next(values) for i in range(len(args))])

            bwd = functools.partial(self.bwd, *static)
        if any(isinstance(leaf, _core.Ref) for leaf in _core.tree_leaves(dynamic)):
            dynamic, fun, fwd, bwd = _of_refs(dynamic, fun, fwd, bwd)
        name, rest = getattr(self.fun, "__name__", "fn"), (dynamic, self.symbolic_zeros, self.optimize_remat)

        def of_pure(inside, outside):
            def forward(*values):
                ((result, residuals), states) = inside(fwd, *values)
                return (result, states), residuals

            def backward(residuals, cotangents):
                return bwd(residuals, cotangents[0])
            result, states = _core.custom_vjp(lambda *values: inside(fun, *values), forward, backward, name, *rest)
            outside(states)
            return result
        return _lifting.lifted("custom_vjp", lambda: _core.custom_vjp(fun, fwd, bwd, name, *rest), of_pure)


def _of_refs(args, fun, fwd, bwd):
    """A function with mutable arrays among its arguments as one that captures them: they have no cotangents."""
    _origins.refuse_repeated_ref(fun, args, {}, "custom_vjp function {} got the same mutable array reference of type {} at {} and {}.")

    def primal(*values):
        result = fun(*_lifting.shown(values))
        if any(isinstance(leaf, _core.Ref) for leaf in _core.tree_leaves(result)):
            raise ValueError("custom_vjp: the function returned a mutable array, which may only be an argument; return its value")
        return result

    def forward(*values):
        given = _lifting.shown(values)
        result, residuals = fwd(*given)
        known = [id(leaf) for leaf in _core.tree_leaves(given)]
        results = len(_core.tree_leaves(result))
        for i, (path, leaf) in enumerate(_core.tree_flatten_with_path((result, residuals))[0]):
            if not isinstance(leaf, _core.Ref) or i >= results and id(leaf) in known:
                continue
            raise ValueError(f"custom_vjp fwd function {_origins.function_in_words(fwd)} returned a mutable array reference of type "
                             f"{_origins.ref_in_words(leaf)} at output tree path {''.join(map(str, path))}" +
                             (", but mutable array references cannot be returned there." if i < results else " that was not an argument."))
        return result, _lifting.hide(residuals, _core.Ref)

    def backward(residuals, cotangent):
        cotangents = bwd(_lifting.shown(residuals), cotangent)
        return _lifting.hide(tuple(cotangents), _core.Ref) if isinstance(cotangents, (tuple, list)) else cotangents
    return _lifting.hide(args, _core.Ref), primal, forward, backward


def _refuse_tracers(static):
    for leaf in _core.tree_leaves(static):
        if isinstance(leaf, _core.Tracer):
            from capibara.jax.errors import UnexpectedTracerError
            raise UnexpectedTracerError(f"custom_vjp: arguments named by nondiff_argnums must not be traced, got {leaf}; pass it as an ordinary "
                                        "argument and return None for its cotangent, or make it static")


def custom_vjp_primal_tree_values(tree):
    """The values of a tree of CustomVJPPrimal, the argument of a forward rule with symbolic_zeros=True."""
    leaves, structure = _core.tree_flatten(tree)
    for leaf in leaves:
        if type(leaf) is not CustomVJPPrimal:
            raise TypeError(f"custom_vjp_primal_tree_values: every leaf must be a CustomVJPPrimal, got {type(leaf)}")
    return structure.unflatten([leaf.value for leaf in leaves])


def custom_gradient(fun):
    """A function that returns (value, rule): the rule maps the value's cotangent to those of the arguments."""

    @_tracebacks.boundary
    @functools.wraps(fun)
    def with_rule(*args):
        value_of = custom_vjp(lambda *values: fun(*values)[0])
        value_of.__name__ = getattr(fun, "__name__", "fn")

        def fwd(*values):
            return fun(*values)[0], values

        def bwd(values, cotangent):
            gradients = fun(*values)[1](cotangent)
            return gradients if isinstance(gradients, tuple) else (gradients,)

        value_of.defvjp(fwd, bwd)
        return value_of(*args)

    return with_rule


def zero_from_primal(value, symbolic_zeros=False):
    """The zero tangents of a tree of values, as arrays or, with symbolic_zeros, as symbolic zeros."""
    leaves, tree = _core.tree_flatten(value)
    tangents = [_core.as_array(leaf).aval.to_tangent_aval() for leaf in leaves]
    if symbolic_zeros:
        return tree.unflatten([SymbolicZero(aval) for aval in tangents])
    return tree.unflatten([_core.library_function("numpy", "zeros")(aval.shape, aval.dtype) for aval in tangents])


def closure_convert(fun, *example_args):
    """A function without closed-over differentiable values, and the list of these values, which are its last arguments."""
    from capibara.jax._programs import eval_jaxpr
    program, out_tree, _ = _core.make_program(fun, example_args, {})
    in_tree = _core.tree_structure(example_args)
    hoisted = [isinstance(value, _core.Tracer) and value.aval.to_tangent_aval().dtype == value.dtype for value in program.consts]
    captured = [value for value, moved in zip(program.consts, hoisted) if moved]

    def converted(*args_and_captured):
        count = len(args_and_captured) - len(captured)
        args, given = args_and_captured[:count], iter(args_and_captured[count:])
        leaves, structure = _core.tree_flatten(args)
        if structure != in_tree:
            raise TypeError("The inputs to the closure produced by closure_convert must have the same pytree structure as the example arguments "
                            f"passed when closure_convert was called: expected {in_tree}, got {structure}")
        constants = [next(given) if moved else value for value, moved in zip(program.consts, hoisted)]
        return out_tree.unflatten(eval_jaxpr(program.jaxpr, constants, *leaves))

    return converted, captured


for _primitive in _core.catalog():
    if _primitive.name in ("custom_jvp_call", "custom_vjp_call"):
        globals()[f"{_primitive.name}_p"] = _primitive
explain_missing(__name__)
