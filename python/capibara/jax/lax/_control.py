"""Structured control flow and tree functions of jax.lax; a separate module, since lax redefines max, min, map and abs."""
import functools
import types
import weakref

from capibara import _core, _lifted_functions, _tracebacks
from capibara._errors import ConcretizationTypeError as _ConcretizationTypeError
from capibara.jax._abstract_mesh import get_abstract_mesh as _get_abstract_mesh
from capibara.jax._api import vmap as _vmap
from capibara.jax._mesh import current_mesh as _current_mesh
from capibara.jax._platforms import lowering_platform as _lowering_platform


def scan(f, init, xs=None, length=None, reverse=False, unroll=1, _split_transpose=False):
    """Runs f over the leading axis of xs, carrying a state; returns the final state and the stacked outputs."""
    if not callable(f):
        raise TypeError("lax.scan: f argument should be a callable.")
    _require_number("unroll", unroll, "`int` or `bool`")
    _require_number("length", length, "`int`")
    if unroll is not True and unroll is not False and unroll < 0:
        raise ValueError(f"scan: `unroll` must be a `bool` or a positive `int`, got {unroll}.")
    if unroll is True:
        unroll = length if length is not None else len(_core.tree_leaves(xs)[0])
    elif unroll is False:
        unroll = 1
    return _lifted_functions.scan(lambda f, init, xs: _core.scan(f, init, xs, length, reverse, max(int(unroll), 1)), f, init, xs)


def _require_number(argument, value, kinds):
    if isinstance(value, _core.Tracer):
        raise _ConcretizationTypeError("Abstract tracer value encountered where concrete value is expected. "
                                      f"The `{argument}` argument to `scan` expects a concrete {kinds} value, got {value}")


def while_loop(cond_fun, body_fun, init_val):
    """Runs body_fun on the state while cond_fun of it is true."""
    if not callable(cond_fun) or not callable(body_fun):
        raise TypeError("lax.while_loop: body_fun and cond_fun arguments should be callable.")
    return _lifted_functions.while_loop(_core.while_loop, cond_fun, body_fun, init_val)


def fori_loop(lower, upper, body_fun, init_val, *, unroll=None):
    """Runs body_fun(i, state) for i in [lower, upper); a scan if the bounds are static, else a while loop."""
    if not callable(body_fun):
        raise TypeError("lax.fori_loop: body_fun argument should be callable.")
    types = [bound.dtype for bound in (lower, upper) if hasattr(bound, "dtype") and not getattr(bound, "weak_type", False)]
    if len(types) == 2 and _core.canonical_dtype(types[0]) != _core.canonical_dtype(types[1]):
        raise TypeError(f"lower and upper arguments to fori_loop must have equal types, got {types[0]} and {types[1]}")
    if not (isinstance(lower, _core.Tracer) or isinstance(upper, _core.Tracer)):
        first, last = int(lower), int(upper)
        if last <= first:
            leaves, tree = _core.tree_flatten(init_val)
            return tree.unflatten([_core.as_array(leaf) for leaf in leaves])
        start = _core.as_array(lower)
        steps = last - first
        unroll = steps if unroll is True else max(int(unroll or 1), 1)
        (_, result), _ = _lifted_functions.scan(lambda f, init, xs: _core.scan(f, init, xs, steps, False, unroll),
                                                _of(body_fun, _counted_step), (start, init_val), None)
        return result
    if unroll not in (None, False, 1):
        raise ValueError("Can only use `unroll` in `fori_loop` if the loop bounds are statically known.")
    lower, upper = _core.as_array(lower), _core.as_array(upper)
    if lower.dtype != upper.dtype:
        dtype = _core.library_function("numpy", "add")(lower, upper).dtype
        lower, upper = _lax("convert_element_type")(lower, dtype), _lax("convert_element_type")(upper, dtype)
    _, _, result = _lifted_functions.while_loop(_core.while_loop, _below, _of(body_fun, _bounded_step), (lower, upper, init_val))
    return result


# Loop bodies, made from a reference to the user's function: a weak one if the result is cached, since it is cached for as long
# as the function lives.
def _counted_step(body_fun):
    def step(carry, _):
        i, state = carry
        return (_lax("add")(i, _ones_like(i)), body_fun()(i, state)), None
    return step


def _bounded_step(body_fun):
    def step(carry):
        i, upper, state = carry
        return _lax("add")(i, _ones_like(i)), upper, body_fun()(i, state)
    return step


def _mapped_step(f):
    def step(_, x):
        return (), f()(x)
    return step


def _below(carry):
    return _lax("lt")(carry[0], carry[1])


_steps = weakref.WeakKeyDictionary()  # {function: {maker: result}}


def _of(function, maker):
    """The cached result of a maker for a function: a loop with a body that was traced before is not traced again."""
    if not isinstance(function, types.FunctionType):
        return maker(lambda: function)
    made = _steps.setdefault(function, {})
    if maker not in made:
        made[maker] = maker(weakref.ref(function))
    return made[maker]


def _lax(name):
    return _core.library_function("lax", name)


def _ones_like(x):
    return _lax("full_like")(x, 1)


_no_operand = object()


def cond(pred, true_fun, false_fun, *operands, operand=_no_operand, linear=None):
    """Calls one of two functions of the operands, by a predicate; in the old form each function is preceded by its operand."""
    if len(operands) == 2 and operand is _no_operand and callable(false_fun) and callable(operands[1]) and not callable(true_fun):
        first, on_true, second, on_false = true_fun, false_fun, *operands
        return _core.cond(pred, lambda of_true, _: on_true(of_true), lambda _, of_false: on_false(of_false), (first, second))
    if pred is None:
        raise TypeError("cond predicate is None")
    if callable(pred):
        raise TypeError(f"Pred type must be either boolean or number, got {pred}.")
    if operand is not _no_operand:
        if operands:
            raise TypeError("if 'operand' keyword is passed then no positional operands can be passed, got "
                            f"operand={operand} and positional operands {operands}")
        operands = (operand,)
    if linear is not None and len(linear) != len(operands):
        raise TypeError(f"cond: linear must have one entry for each operand, got {len(linear)} for {len(operands)}")
    return _lifted_functions.branches(lambda both, operands: _core.cond(pred, *both, operands), (true_fun, false_fun), operands)


def switch(index, branches, *operands, operand=_no_operand):
    """Calls the function of the operands that an index selects; the index is clamped."""
    if operand is not _no_operand:
        operands = (operand,)
    if not all(callable(branch) for branch in branches):
        raise TypeError("lax.switch: branches argument should be a sequence of callables.")
    if callable(index) or isinstance(index, str):
        raise TypeError(f"Index type must be an integer, got {index}.")
    shape = (len(index),) if isinstance(index, (list, tuple)) else getattr(index, "shape", ())
    if shape != ():
        raise TypeError(f"Branch index must be scalar, got {index} of shape {shape}.")
    return _lifted_functions.branches(lambda functions, operands: _core.switch(index, functions, operands), branches, operands)


def map(f, xs, *, batch_size=None):
    """Applies f to every slice of the leading axis, one after the other or in batches."""
    if batch_size == 0:  # one batch of everything
        return _vmap(f)(xs)
    if batch_size is not None:
        return _core.map_batched(f, xs, batch_size)
    return scan(_of(f, _mapped_step), (), xs)[1]


def associative_scan(fn, elems, reverse=False, axis=0, *, tpu_optimized=False):
    """All prefixes combined by an associative function, in logarithmic depth.

    With `tpu_optimized` a linear recurrence, fn((a1, b1), (a2, b2)) = (a1 * a2, a2 * b1 + b2) on two arrays of one type,
    runs as capibara.kernels.linear_recurrence: chunk by chunk, in a single pass on the CPU. fn is traced once more to
    recognize it; for any other fn the flag has no effect.
    """
    if not callable(fn):
        raise TypeError("lax.associative_scan: fn argument should be callable.")
    return _core.associative_scan(fn, elems, reverse, axis, tpu_optimized)


def custom_root(f, initial_guess, solve, tangent_solve, has_aux=False):
    """A root of f whose derivative comes from the equation it satisfies."""
    return _core.custom_root(f, initial_guess, solve, tangent_solve, has_aux)


def custom_linear_solve(matvec, b, solve, transpose_solve=None, symmetric=False, has_aux=False):
    """The solution of a linear system whose derivative comes from the system."""
    if transpose_solve is None and symmetric:
        transpose_solve = solve
    return _core.custom_linear_solve(matvec, b, solve, transpose_solve, symmetric, has_aux)


def stop_gradient(x):
    """The same values, without derivatives."""
    function = _core.library_function("lax", "stop_gradient")
    leaves, tree = _core.tree_flatten(x)
    for leaf in leaves:
        if callable(leaf) and not hasattr(leaf, "dtype"):
            raise TypeError(f"stop_gradient: the values must be arrays or numbers, got {leaf}")
    return tree.unflatten([function(leaf) if isinstance(leaf, _core.Array) or hasattr(leaf, "dtype") or isinstance(leaf, (float, complex)) else leaf for leaf in leaves])


def optimization_barrier(operand, /):
    """The same values, across which the compiler does not optimize."""
    leaves, tree = _core.tree_flatten(operand)
    return tree.unflatten(list(_core.library_function("lax", "optimization_barrier")(leaves)))


def composite(decomposition, name, version=0):
    """A function under a name that a back end may recognize; here it runs as its decomposition."""
    @functools.wraps(decomposition)
    def call(*args, **attributes):
        leaves, tree = _core.tree_flatten(args)
        return decomposition(*tree.unflatten([_core.as_array(leaf) for leaf in leaves]), **attributes)
    return call


def platform_dependent(*args, default=None, **per_platform):
    """Calls the function for the platform that a program is lowered for: 'cpu', 'cuda', 'rocm', 'tpu', or 'gpu' for cuda and rocm."""
    platform = _lowering_platform()
    function = per_platform.get(platform)
    if function is None and platform in ("cuda", "rocm"):
        function = per_platform.get("gpu")
    if function is None:
        function = default
    if function is None:
        raise NotImplementedError(f"platform_dependent: there is no function for the platform '{platform}' and no default; there are functions "
                                  f"for {sorted(per_platform)}")
    return function(*args)


def _on_trees(name):
    """Applies a collective to every leaf of a tree."""
    function = _core.library_function("lax", name)

    def collective(x, axis_name, *args, **kwargs):
        leaves, tree = _core.tree_flatten(x)
        return tree.unflatten([function(leaf, axis_name, *args, **kwargs) for leaf in leaves])
    collective.__name__ = collective.__qualname__ = name
    if function is not None:
        collective.__wrapped__, collective.__doc__ = function, function.__doc__.split("\n\n")[1]
    return _tracebacks.boundary(collective)


def _pcast(x, axis_name, *, to):
    """The same values with another manual type (varying, reduced, ...) along mesh axes."""
    if isinstance(axis_name, (set, frozenset)):
        raise TypeError(f"{axis_name=} must be a tuple or a str. Got {axis_name}")
    if not axis_name:
        return x
    if to not in ("unreduced", "reduced", "varying"):
        raise ValueError(f"Got unexpected `to` value. Allowed `to` values are: 'unreduced', 'reduced', 'varying'; got {to!r}")
    try:
        return _on_trees("pcast")(x, axis_name, to=to)
    except NameError:
        mesh = _current_mesh()
        names = axis_name if isinstance(axis_name, tuple) else (axis_name,)
        if mesh is None or _get_abstract_mesh().manual_axes or not set(names) <= set(mesh.axis_names):
            raise
        raise ValueError("pvary should be called under jax.shard_map.") from None


_pcast.__name__ = _pcast.__qualname__ = "pcast"
COLLECTIVES = {
    name: _pcast if name == "pcast" else _on_trees(name)
    for name in ("psum", "pmean", "pmax", "pmin", "ppermute", "all_gather", "all_to_all", "psum_scatter", "pshuffle",
                 "pswapaxes", "pbroadcast", "pcast")
    if _core.library_function("lax", name) is not None
}
__all__ = ["scan", "while_loop", "fori_loop", "cond", "switch", "map", "associative_scan", "custom_root", "custom_linear_solve", "stop_gradient", "optimization_barrier", "platform_dependent", "composite"]


_tracebacks.guard(__name__)
