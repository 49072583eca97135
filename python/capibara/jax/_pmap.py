"""jax.pmap: maps a function over devices, with shard_map over a mesh of one axis."""
from capibara import _core
from capibara._tree_errors import prefix_errors
from capibara.jax import tree_util
from capibara.jax._api import _wraps, jit
from capibara.jax._devices import local_devices
from capibara.jax._mesh import AxisType, Mesh, PartitionSpec
from capibara.jax._sharding import NamedSharding

_UNNAMED = "<unnamed axis>"


def pmap(fun, axis_name=None, *, in_axes=0, out_axes=0, static_broadcasted_argnums=(), devices=None, backend=None, axis_size=None,
         donate_argnums=()):
    """Compiles a function and maps it over an axis of its arguments, one element for each device."""
    static = (static_broadcasted_argnums,) if isinstance(static_broadcasted_argnums, int) else tuple(static_broadcasted_argnums)
    if devices is not None and not devices:
        raise ValueError("'devices' argument to pmap must be non-empty, or None.")
    compiled = {}

    def function_for(args):
        if static and max(static) >= len(args):
            raise ValueError(f"pmapped function has static_broadcasted_argnums={static} but was called with only {len(args)} positional "
                             f"argument{'s' if len(args) != 1 else ''}. All static broadcasted arguments must be passed positionally.")
        for i in static:
            try:
                hash(args[i])
            except TypeError:
                raise ValueError("Non-hashable static arguments are not supported, as this can lead to unexpected cache-misses. Static "
                                 f"argument (index {i}) of type {type(args[i])} for function {getattr(fun, '__name__', fun)} is "
                                 "non-hashable.") from None
        key = (len(args), tuple((i % len(args), args[i]) for i in static))
        if key not in compiled:
            held = dict(key[1])
            axes = tuple(axis for i, axis in enumerate(in_axes) if i not in held) if isinstance(in_axes, (tuple, list)) else in_axes

            def _fun(*dynamic, **kwargs):
                values = iter(dynamic)

                def of_parts(parts, keywords):
                    own = iter(parts)
                    return fun(*(held[i] if i in held else next(own) for i in range(len(args))), **keywords)

                return _mapped(of_parts, tuple(values), kwargs, axes, out_axes, axis_name or _UNNAMED, axis_size, devices, backend)

            compiled[key] = jit(_fun, donate_argnums=donate_argnums if not held else ())
        return compiled[key], [x for i, x in enumerate(args) if i not in dict(key[1])]

    def pmap_f(*args, **kwargs):
        function, dynamic = function_for(args)
        return function(*dynamic, **kwargs)

    def lower(*args, **kwargs):
        function, dynamic = function_for(args)
        return function.lower(*dynamic, **kwargs)

    result = _wraps(fun, pmap_f)
    result.lower = lower
    return result


def _mapped(function, args, kwargs, in_axes, out_axes, axis_name, axis_size, devices, backend):
    leaves, tree = _core.tree_flatten((args, kwargs))
    arrays = [_core.as_array(leaf) for leaf in leaves]
    axes = _leaf_axes(in_axes, args, "in_axes", bool(kwargs)) + [0] * (len(leaves) - len(tree_util.tree_leaves(args)))
    size = _mapped_size(arrays, axes, axis_size)
    mesh = _mesh(size, axis_name, devices, backend)
    structure, out_specs = [], []

    def on_parts(parts):
        whole = [part if axis is None else part.reshape(_without(part.shape, axis)) for part, axis in zip(parts, axes)]
        own_args, keywords = tree.unflatten(whole)
        result = function(own_args, keywords)
        out_leaves, out_tree = _core.tree_flatten(result)
        positions = _leaf_axes(out_axes, result, "out_axes")
        structure[:] = [out_tree]
        out_specs[:] = [_axes_of(axis, len(_core.as_array(leaf).shape) + 1, axis_name) for leaf, axis in zip(out_leaves, positions)]
        return [_expanded(_core.as_array(leaf), axis) for leaf, axis in zip(out_leaves, positions)]

    placement = NamedSharding(mesh, PartitionSpec())._placement
    in_specs = [_axes_of(axis, array.ndim, axis_name) for axis, array in zip(axes, arrays)]
    results = _core.shard_map(on_parts, function, arrays, placement, False, [(spec, [], []) for spec in in_specs], [axis_name], False,
                              lambda rows: [(spec, [], []) for spec in out_specs])
    return structure[0].unflatten(results)


def _without(shape, axis):
    axis %= len(shape)
    return shape[:axis] + shape[axis + 1:]


def _expanded(array, axis):
    if axis is None:
        return array
    axis %= array.ndim + 1
    return array.reshape(array.shape[:axis] + (1,) + array.shape[axis:])


def _axes_of(axis, rank, name):
    return [] if axis is None else [[]] * (axis % rank) + [[name]]


def _leaf_axes(axes, tree, word, by_keyword=False):
    """Broadcasts a tree prefix to one axis or None per leaf."""
    if axes is None or isinstance(axes, int):
        return [axes] * len(tree_util.tree_leaves(tree))
    axes = tuple(axes) if isinstance(axes, list) else axes
    prefix, structure = tree_util.tree_flatten(axes, is_leaf=lambda leaf: leaf is None)
    try:
        below = structure.flatten_up_to(tree)
    except (ValueError, TypeError):
        found = next(iter(prefix_errors(axes, tree, lambda leaf: leaf is None)), None)
        text = f"pmap {word} specification must be a tree prefix of the corresponding value." if found is None else found(f"pmap {word}")
        if word == "in_axes":
            text = (f"{text}\n\nThe 'full pytree' here is the tuple of arguments passed positionally to the pmapped function, and the "
                    "value of "
                    "`in_axes` must be a tree prefix of that tuple. But it was not a prefix.")
        if by_keyword:
            text += ("\n\nWhen some arguments are passed by keyword to the pmapped function, they are not included in the comparison to "
                     "`in_axes`. Instead, each argument passed by keyword is mapped over its leading axis.")
        raise ValueError(str(text)) from None
    return [axis for axis, subtree in zip(prefix, below) for _ in tree_util.tree_leaves(subtree)]


def _mapped_size(arrays, axes, axis_size):
    sizes = []
    for array, axis in zip(arrays, axes):
        if axis is None:
            continue
        if not -array.ndim <= axis < array.ndim:
            raise ValueError(f"pmap was requested to map its argument along axis {axis}, which implies that its rank should be at least "
                             f"{axis + 1 if axis >= 0 else -axis}, but is only {array.ndim} (its shape is {array.shape})")
        sizes.append(array.shape[axis])
    if axis_size is not None:
        sizes.append(axis_size)
    if not sizes:
        raise ValueError("pmap requires at least one argument with a mapped axis.")
    if len(set(sizes)) > 1:
        raise ValueError(f"pmap got inconsistent sizes for array axes to be mapped: {sorted(set(sizes))}")
    return sizes[0]


def _mesh(size, axis_name, devices, backend):
    chosen = list(local_devices(backend=backend) if devices is None else devices)
    if size > len(chosen) or (devices is not None and size != len(chosen)):
        raise ValueError(f"compiling computation that requires {size} logical devices, but only {len(chosen)} XLA devices are available "
                         f"(num_replicas={size})")
    return Mesh(chosen[:size], (axis_name,), (AxisType.Auto,))
