"""The function transforms: thin wrappers that pass their arguments to the core."""
import functools
import types
import weakref

from capibara import _core, _lifted_functions, _lifted_maps, _lifting, _origins, _tracebacks, _vmappables
from capibara._symbolic_tracing import eval_shape as _eval_shape
from capibara._types import ShapeDtypeStruct, as_abstract_arrays, with_ref_types
from capibara._wrapping import copy_attributes
from capibara.jax._devices import target_of
from capibara.jax._sharding import common_devices_indices_map


def _wraps(function, wrapper, doc=None):
    """Gives a wrapper the attributes of the wrapped function and makes it a boundary. `doc` may format {fun} and {doc}."""
    wrapper = _tracebacks.boundary(wrapper)
    copy_attributes(function, wrapper)
    if doc is not None:
        wrapper.__doc__ = doc.format(fun=getattr(function, "__name__", "a function"), doc=getattr(function, "__doc__", None) or "")
    wrapper.__wrapped__ = function
    return wrapper


def _check_callable(function, operation):
    if isinstance(function, staticmethod):
        raise TypeError(f"{operation}: staticmethod arguments are not supported, got {function!r}; put @staticmethod outside")
    if not callable(function):
        raise TypeError(f"{operation}: Expected a callable value, got {function!r}")
    import inspect  # slow to import
    if inspect.isgeneratorfunction(function):
        raise TypeError(f"{operation}: Expected a function, got a generator function: {function}")


def _tuple_of(value):
    if value is None:
        return ()
    if isinstance(value, (int, str)):
        return (value,)
    return tuple(value)


def _signature(function):
    import inspect
    try:
        return inspect.signature(function)
    except (ValueError, TypeError):
        return None


def _positions_and_names(function, positions, names, what):
    """Infers positions from names, or names from positions, if the others are None; `what` is 'static' or 'donate'."""
    infer_positions, infer_names = positions is None, names is None
    positions, names = list(_tuple_of(positions)), list(_tuple_of(names))
    signature = _signature(function)
    if signature is None:
        if names and what == "donate":
            raise ValueError(f"Getting the signature of function {function} failed. Pass donate_argnums instead of donate_argnames.")
        return positions, names
    from inspect import Parameter as kinds
    parameters = list(signature.parameters.values())
    positional = [p.name for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    takes_more = any(p.kind is kinds.VAR_POSITIONAL for p in parameters)
    takes_names = any(p.kind is kinds.VAR_KEYWORD for p in parameters)
    for position in positions:
        if not takes_more and not -len(positional) <= position < len(positional):
            raise ValueError(f"jitted function has {what}_argnums={tuple(positions)}, but only accepts "
                             f"{len(positional)} positional arguments.")
    allowed = {p.name for p in parameters if p.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)}
    unnamed = {p.name for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.VAR_POSITIONAL)}
    for name in names:
        if name in unnamed or (not takes_names and name not in allowed):
            raise ValueError(f"jitted function has invalid argnames {{{name!r}}} in {what}_argnames. Function does not "
                             f"take these args.")
    if infer_names:
        names = [positional[p] for p in positions if -len(positional) <= p < len(positional)
                 and parameters[p if p >= 0 else p + len(positional)].kind is kinds.POSITIONAL_OR_KEYWORD]
    elif infer_positions:
        positions = [positional.index(n) for n in names if n in positional]
    return positions, names


def jit(fun=None, /, *, in_shardings=None, out_shardings=None, static_argnums=None, static_argnames=None,
        donate_argnums=None, donate_argnames=None, keep_unused=False, device=None, backend=None, inline=False,
        compiler_options=None, abstracted_axes=None, debug=False):
    """Compiles a function for the types of its arguments.

    With `debug=True` the function runs operation by operation, so that Python's print shows concrete values.
    """
    if fun is None:
        return functools.partial(
            jit, static_argnums=static_argnums, static_argnames=static_argnames, donate_argnums=donate_argnums,
            donate_argnames=donate_argnames, keep_unused=keep_unused, device=device, backend=backend, inline=inline,
            compiler_options=compiler_options, debug=debug, in_shardings=in_shardings, out_shardings=out_shardings)
    _check_callable(fun, "jit")
    if abstracted_axes is not None:
        raise NotImplementedError(f"jit: abstracted_axes is not supported, got {abstracted_axes!r}")
    target = None
    if device is not None or backend is not None:
        if word := "in" if in_shardings is not None else "out" if out_shardings is not None else "":
            raise ValueError(f"If backend or device is specified on jit, then {word}_shardings should not be specified.")
        target = target_of(device, backend, "jit")
    if debug:
        def run_directly(*args, **kwargs):
            with _core.ConfigScope({"disable_jit": True}):
                return fun(*args, **kwargs)
        return _wraps(fun, run_directly)
    static_argnums, static_argnames = _positions_and_names(fun, static_argnums, static_argnames, "static")
    donate_argnums, donate_argnames = _positions_and_names(fun, donate_argnums, donate_argnames, "donate")
    for kind, both in (("argnames", set(static_argnames) & set(donate_argnames)),
                       ("argnums", set(static_argnums) & set(donate_argnums))):
        if both:
            raise ValueError(f"static_{kind} and donate_{kind} cannot intersect: both hold {sorted(both)}")
    traced = fun
    if in_shardings is not None or out_shardings is not None:
        from capibara.jax._placing import bordered
        traced = _wraps(fun, bordered(fun, in_shardings, out_shardings, static_argnums))
    options = (static_argnums, static_argnames, donate_argnums, donate_argnames, keep_unused, bool(inline), target, _compiler_options(compiler_options))
    known = _known_calls(fun, (*map(repr, options), in_shardings, out_shardings))
    compiled = _core.jit(traced, *options, known.calls if known else None)
    if known:
        known.calls = compiled._shared_calls
    copy_attributes(fun, compiled)
    compiled.__wrapped__ = fun
    given = {"static_argnums": static_argnums, "static_argnames": static_argnames, "donate_argnums": donate_argnums,
             "donate_argnames": donate_argnames, "keep_unused": keep_unused, "inline": inline, "compiler_options": compiler_options,
             "in_shardings": in_shardings, "out_shardings": out_shardings, "device": device, "backend": backend}
    compiled._options = {name: value for name, value in given.items() if value not in (None, False, [])} or None
    return compiled


class _Known:
    """The traced and compiled calls of a function with one set of options."""
    calls = None


_functions = weakref.WeakKeyDictionary()  # {function: {options: _Known}}


def _known_calls(fun, options):
    """The calls shared by all jits of a function with these options; None for functions without a stable identity."""
    if not isinstance(fun, (types.FunctionType, types.BuiltinFunctionType, functools.partial)):
        return None
    try:
        return _functions.setdefault(fun, {}).setdefault(options, _Known())
    except TypeError:  # not hashable, or not weakly referenceable
        return None


def _compiler_options(options):
    """[(name, value)]: numbers, truth values and texts."""
    if options is None:
        return []
    for name, value in options.items():
        if not isinstance(name, str) or not isinstance(value, (bool, int, float, str)):
            raise TypeError(f"compiler_options: expected names with numbers, truth values or texts, got {name!r}: {value!r}")
    return sorted(options.items())


def _refuse_reduce_axes(axes, operation):
    if axes:
        raise NotImplementedError(f"{operation}: reduce_axes is not supported, as in jax, got {axes!r}; sum with lax.psum in the function")


def _value_and_grad(fun, argnums, has_aux, *rest):
    def transform(fun, has_aux):
        value, gradient = _core.value_and_grad(fun, argnums, has_aux, *rest)
        return (value[0], gradient, value[1]) if has_aux else (value, gradient)
    value, gradient, *aux = _lifting.differentiated("reverse", fun, has_aux, transform)
    return (value, aux[0]) if has_aux else value, gradient


def value_and_grad(fun, argnums=0, has_aux=False, holomorphic=False, allow_int=False, reduce_axes=()):
    """The value of a scalar function and its gradient."""
    _check_callable(fun, "value_and_grad")
    _refuse_reduce_axes(reduce_axes, "value_and_grad")

    def value_and_grad_f(*args, **kwargs):
        return _value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, args, kwargs)

    return _wraps(fun, value_and_grad_f, f"Value and gradient of {{fun}} with respect to positional argument(s) {argnums}: a pair.")


def grad(fun, argnums=0, has_aux=False, holomorphic=False, allow_int=False, reduce_axes=()):
    """The gradient of a scalar function."""
    _check_callable(fun, "grad")
    _refuse_reduce_axes(reduce_axes, "grad")

    def grad_f(*args, **kwargs):
        value, gradient = _value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, args, kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return _wraps(fun, grad_f, f"Gradient of {{fun}} with respect to positional argument(s) {argnums}.")


def jvp(fun, primals, tangents, has_aux=False):
    """A function's value and its directional derivative along the tangents."""
    _check_callable(fun, "jvp")
    if _lifting.Registrations.mutable and _lifted_functions.uses_mutable(primals, tangents):
        return _lifted_functions.jvp_of_mutable(jvp, fun, primals, tangents, has_aux)
    return _lifting.differentiated("forward", fun, has_aux, lambda fun, has_aux: _core.jvp(fun, primals, tangents, has_aux))


def vjp(fun, *primals, has_aux=False, reduce_axes=()):
    """A function's value and its pullback, from cotangents of the result to cotangents of the arguments."""
    _check_callable(fun, "vjp")
    _refuse_reduce_axes(reduce_axes, "vjp")
    from capibara.jax.ad import VJP
    value, pull_back, *aux = _lifting.differentiated("reverse", fun, has_aux, lambda fun, has_aux: _core.vjp(fun, primals, has_aux))
    return (value, VJP(pull_back.func, *pull_back.args), *aux)


def linearize(fun, *primals, has_aux=False):
    """A function's value and its derivative at that point as a linear function."""
    _check_callable(fun, "linearize")
    return _lifting.differentiated("linearize", fun, has_aux, lambda fun, has_aux: _core.linearize(fun, primals, has_aux))


def linear_transpose(fun, *primals, reduce_axes=()):
    """The transpose of a function promised to be linear."""
    _refuse_reduce_axes(reduce_axes, "linear_transpose")
    return _core.linear_transpose(fun, *primals)


def _jacobian(forward, fun, argnums, has_aux, holomorphic, allow_int):
    _check_callable(fun, "jacfwd" if forward else "jacrev")

    def jacobian_f(*args, **kwargs):
        return _core.jacobian(forward, fun, argnums, has_aux, holomorphic, allow_int, args, kwargs)

    return _wraps(fun, jacobian_f, f"Jacobian of {{fun}} with respect to positional argument(s) {argnums}.")


def jacfwd(fun, argnums=0, has_aux=False, holomorphic=False):
    """The Jacobian, column by column in forward mode."""
    return _jacobian(True, fun, argnums, has_aux, holomorphic, False)


def jacrev(fun, argnums=0, has_aux=False, holomorphic=False, allow_int=False):
    """The Jacobian, row by row in reverse mode."""
    return _jacobian(False, fun, argnums, has_aux, holomorphic, allow_int)


def jacobian(fun, argnums=0, has_aux=False, holomorphic=False, allow_int=False):
    """The Jacobian, in reverse mode."""
    return jacrev(fun, argnums, has_aux, holomorphic, allow_int)


def hessian(fun, argnums=0, has_aux=False, holomorphic=False):
    """Second derivatives, forward over reverse."""
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)


def vmap(fun, in_axes=0, out_axes=0, axis_name=None, axis_size=None, spmd_axis_name=None, sum_match=False):
    """Maps a function over an axis of its arguments; `spmd_axis_name`: the mesh axes over which the mapped axis is sharded inside."""
    _check_callable(fun, "vmap")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if isinstance(in_axes, bool) or not (in_axes is None or isinstance(in_axes, tuple) or _lifted_maps.is_axis(in_axes)):
        raise TypeError(f"vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments passed to "
                        f"the function, but got {in_axes}.")
    for name, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        if not all(axis is None or _lifted_maps.is_axis(axis) for axis in _core.tree_leaves(axes, lambda x: x is None)):
            raise TypeError(f"vmap {name} must be an int, None, or a container of these, but got {axes}.")
    spmd = [] if spmd_axis_name is None else [str(name) for name in _tuple_of(spmd_axis_name)]

    def vmap_f(*args, **kwargs):
        _origins.refuse_repeated_ref(fun, args, kwargs)
        def transform(fun, in_axes, out_axes, size, args, kwargs):
            return _core.vmap(fun, in_axes, out_axes, axis_name, size, spmd, args, kwargs)
        run = functools.partial(_lifted_maps.vmap, transform)
        if _vmappables.registered:
            return _vmappables.mapped(run, fun, in_axes, out_axes, axis_size, args, kwargs)
        return run(fun, in_axes, out_axes, axis_size, args, kwargs)
    return _wraps(fun, vmap_f, "Vectorized version of {fun}: its arguments have a further axis, over which it is mapped.\n\n"
                               "Original documentation:\n\n{doc}")


def checkpoint(fun=None, *, prevent_cse=True, policy=None, static_argnums=(), static_argnames=(), concrete=False):
    """A function whose intermediate values are recomputed in the backward pass, unless the policy saves them."""
    if concrete:
        raise NotImplementedError("checkpoint: concrete=True is not supported, as in jax; name the arguments that must have values in "
                                  "static_argnums, or compute them under jax.ensure_compile_time_eval()")
    if fun is None:
        return functools.partial(checkpoint, prevent_cse=prevent_cse, policy=policy, static_argnums=static_argnums,
                                 static_argnames=static_argnames)
    _check_callable(fun, "checkpoint")
    flags = set(map(bool, _core.tree_leaves(prevent_cse)))  # one for all arguments, or one for each
    if len(flags) > 1:
        raise NotImplementedError(f"checkpoint: prevent_cse is one truth value for all arguments, got {prevent_cse!r}")
    prevent_cse = flags.pop() if flags else True
    static_argnums = _tuple_of(static_argnums)
    static_argnames = set(_tuple_of(static_argnames))

    def checkpoint_f(*args, **kwargs):
        static = {n % len(args) for n in static_argnums} if args else set()
        static_names = {name: value for name, value in kwargs.items() if name in static_argnames}
        def run(fun, args, kwargs):
            return _lifting.checkpointed(fun, lambda fun: _core.checkpoint(fun, args, kwargs, policy, prevent_cse))

        if not static and not static_names:
            return run(fun, args, kwargs)
        dynamic = [value for i, value in enumerate(args) if i not in static]

        def with_static(*values, **names):
            values = iter(values)
            full = [args[i] if i in static else next(values) for i in range(len(args))]
            return fun(*full, **names, **static_names)

        with_static.__name__ = getattr(fun, "__name__", "fn")
        names = {name: value for name, value in kwargs.items() if name not in static_names}
        return run(with_static, tuple(dynamic), names)

    return _wraps(fun, checkpoint_f)


remat = checkpoint


def make_jaxpr(fun, static_argnums=(), axis_env=None, return_shape=False, abstracted_axes=None):
    """A function that returns the traced program of `fun`. `axis_env` is [(name, size)]: axes that collectives may name."""
    _check_callable(fun, "make_jaxpr")
    if abstracted_axes is not None:
        raise NotImplementedError(f"make_jaxpr: abstracted_axes is not supported, got {abstracted_axes!r}")
    static_argnums = _tuple_of(static_argnums)

    def make_jaxpr_f(*args, **kwargs):
        static = {n % len(args) for n in static_argnums} if args else set()
        dynamic, kwargs = with_ref_types((tuple(value for i, value in enumerate(args) if i not in static), kwargs))

        def with_static(*values, **names):
            values = iter(values)
            return fun(*[args[i] if i in static else next(values) for i in range(len(args))], **names)

        with_static.__name__ = getattr(fun, "__name__", "fn")
        with _named_axes(axis_env):
            program, _, shapes = _core.make_program(with_static if static else fun, dynamic, kwargs)
        return (program, shapes) if return_shape else program

    make_jaxpr_f = _wraps(fun, make_jaxpr_f)
    for name in ("__name__", "__qualname__"):
        if hasattr(fun, name):
            setattr(make_jaxpr_f, name, f"make_jaxpr({getattr(fun, name)})")
    make_jaxpr_f.__module__ = "jax"
    return make_jaxpr_f


def _named_axes(axis_env):
    import contextlib
    scopes = contextlib.ExitStack()
    for name, size in axis_env or ():
        scopes.enter_context(_core.NamedAxis(name, size))
    return scopes


def eval_shape(fun, *args, **kwargs):
    """The shapes and dtypes of a function's result, without computing it; results may also be returned as types."""
    _check_callable(fun, "eval_shape")

    def of_types(*args, **kwargs):
        return as_abstract_arrays(fun(*args, **kwargs), with_values=True)
    of_types.__wrapped__ = fun
    return _lifted_maps.as_types(_eval_shape(of_types, *with_ref_types((args, kwargs))))


def ensure_compile_time_eval():
    """A context in which operations are evaluated immediately, even while a function is being traced."""
    return _core.NamedScope("")


class named_scope:
    """A name for the operations traced inside; also a decorator."""

    def __init__(self, name):
        if not isinstance(name, str):
            raise TypeError(f"named_scope name argument must be a string, got {name!r}.")
        if not name:
            raise ValueError("named_scope: the name must not be empty")
        self._name = name
        self._open = []

    def __enter__(self):
        scope = _core.NamedScope(self._name)
        scope.__enter__()
        self._open.append(scope)

    def __exit__(self, *exception):
        self._open.pop().__exit__(*exception)

    def __call__(self, fun):
        def scoped(*args, **kwargs):
            with named_scope(self._name):
                return fun(*args, **kwargs)
        return _wraps(fun, scoped)


def named_call(fun, *, name=None):
    """A function whose operations are traced in a scope with its name."""
    return named_scope(name or fun.__name__)(fun)


def block_until_ready(x):
    """Waits for every array of a tree."""
    return _core.block_until_ready(x)


def device_get(x):
    """Every array of a tree as a NumPy array; tracers and keys, which have no NumPy form, are returned unchanged."""
    import numpy as np
    leaves, tree = _core.tree_flatten(x)
    arrays = [isinstance(leaf, _core.ArrayImpl) and isinstance(leaf.dtype, np.dtype) for leaf in leaves]
    for leaf, is_array in zip(leaves, arrays):
        if is_array:
            _core.fetch(leaf)
    return tree.unflatten([np.asarray(leaf) if is_array else leaf for leaf, is_array in zip(leaves, arrays)])


def copy_to_host_async(x):
    """Starts copies to the host for every leaf that supports it, so that a later device_get waits less."""
    for leaf in _core.tree_leaves(x):
        copy = getattr(leaf, "copy_to_host_async", None)
        if copy is not None:
            copy()
    return x


def device_put(x, device=None, *, src=None, donate=False, may_alias=None):
    """Places every leaf of a tree: on the default device, on a device, or according to a sharding.

    `src` is only checked: arrays know their devices. With `may_alias=False` each result has its own memory.
    """
    from capibara.jax import _placing
    if src is not None:
        _placing.spread(src, x, "device_put src")  # raises if it does not fit the tree
    if device is None and not donate and may_alias is None:
        leaves, tree = _core.tree_flatten(x)
        return tree.unflatten(_placing.put_by_default(leaves))
    return _placing.device_put(x, device, may_alias, donate)


def pure_callback(callback, result_shape_dtypes, *args, sharding=None, vmap_method=None, vectorized=None, **kwargs):
    """Calls a Python function without side effects from a program."""
    if vectorized is not None:
        raise NotImplementedError("pure_callback: use vmap_method instead of vectorized")
    _check_result_types(result_shape_dtypes)
    return _core.pure_callback(_reporting(callback, "pure_callback"), result_shape_dtypes, args, kwargs, vmap_method)


def io_callback(callback, result_shape_dtypes, *args, sharding=None, ordered=False, **kwargs):
    """Calls a Python function with side effects from a program, exactly once."""
    _check_result_types(result_shape_dtypes)
    return _core.io_callback(_reporting(callback, "io_callback"), result_shape_dtypes, args, kwargs, ordered)


def _check_result_types(types):
    for leaf in _core.tree_leaves(types):
        dtype = getattr(leaf, "dtype", None)
        if dtype is not None and _core.canonical_dtype(dtype) != dtype:
            raise ValueError(f"result_shape_dtypes cannot specify 64-bit types when `jax_enable_x64` is disabled, got {dtype}")


def _reporting(callback, api):
    """Wraps a callback to log its errors where they occur: the code that waits for the result may be far away."""
    @functools.wraps(callback, assigned=("__name__",), updated=())
    def call(*args, **kwargs):
        try:
            return callback(*args, **kwargs)
        except Exception:
            import logging
            logging.getLogger("jax._src.callback").exception("jax.%s failed", api)
            raise
    named = callback
    while isinstance(named, functools.partial):
        named = named.func
    call.__name__ = getattr(named, "__name__", type(named).__name__)  # shown in programs and profiles
    return call


def clear_caches():
    """Clears all caches of traced and compiled functions and everything derived from them; later calls retrace."""
    import gc
    _core.clear_caches()
    common_devices_indices_map.cache_clear()
    gc.collect()


def _named(sharding):
    """The sharding if it is on a mesh; None for others, which are not part of types."""
    return sharding if hasattr(sharding, "mesh") and not sharding.mesh.empty else None


def typeof(x):
    """The abstract type of a value."""
    if isinstance(x, ShapeDtypeStruct):
        named = _named(x.sharding)
        return _core.ShapedArray(x.shape, x.dtype, x.weak_type, sharding=named, manual_axis_type=x.manual_axis_type)
    return _lifting.type_of(x) if _lifting.is_hi(x) else _core.type_of(x)


_lifted_functions.set_jit(jit)
_tracebacks.guard(__name__)
