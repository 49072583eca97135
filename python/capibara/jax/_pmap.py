"""jax.pmap: a function mapped over devices."""
from capibara.jax import tree_util
from capibara.jax._api import _wraps, jit, vmap
from capibara.jax._devices import local_device_count


def pmap(fun, axis_name=None, *, in_axes=0, out_axes=0, static_broadcasted_argnums=(), devices=None, backend=None, axis_size=None,
         donate_argnums=()):
    """Compiles a function and maps it over the leading axis of its arguments, one element for each device.

    The devices of one process are one device: the axis has size one.
    """
    if devices is not None and len(devices) != 1:
        raise NotImplementedError(f"pmap: the mapped axis has size one, so that there is one device, got devices={devices}; use jit with "
                                  "shardings for several")
    device = None if devices is None else devices[0]
    static = (static_broadcasted_argnums,) if isinstance(static_broadcasted_argnums, int) else tuple(static_broadcasted_argnums)
    compiled = {}

    def mapped_function(args):
        if static and max(static) >= len(args):
            raise ValueError(f"pmapped function has static_broadcasted_argnums={static} but was called with only {len(args)} positional "
                             f"argument{'s' if len(args) != 1 else ''}. All static broadcasted arguments must be passed positionally.")
        key = (len(args), tuple((i % len(args), args[i]) for i in static))
        if key not in compiled:
            held = dict(key[1])

            def of_dynamic(*dynamic, **kwargs):
                values = iter(dynamic)
                return fun(*(held[i] if i in held else next(values) for i in range(len(args))), **kwargs)

            axes = tuple(in_axes[i] for i in range(len(args)) if i not in held) if isinstance(in_axes, (tuple, list)) else in_axes
            compiled[key] = jit(vmap(_wraps(fun, of_dynamic), in_axes=axes, out_axes=out_axes, axis_name=axis_name, axis_size=axis_size),
                                donate_argnums=donate_argnums if not held else (), device=device, backend=backend)
        return compiled[key], [x for i, x in enumerate(args) if i not in {j for j, _ in key[1]}]

    def pmap_f(*args, **kwargs):
        function, dynamic = mapped_function(args)
        size = axis_size if axis_size is not None else _mapped_size(dynamic, in_axes, kwargs)
        if size is None:
            raise ValueError("pmap requires at least one argument with a mapped axis.")
        if size > local_device_count():
            raise ValueError(f"pmap: the mapped axis has size {size}, but there is {local_device_count()} device")
        if size > 1:
            raise NotImplementedError(f"pmap: the mapped axis must have size one, got {size}; use jit with shardings for several devices")
        return function(*dynamic, **kwargs)

    def lower(*args, **kwargs):
        function, dynamic = mapped_function(args)
        return function.lower(*dynamic, **kwargs)

    result = _wraps(fun, pmap_f)
    result.lower = lower
    return result


def _mapped_size(args, in_axes, kwargs):
    sizes = []
    for i, argument in enumerate(args):
        axis = in_axes[i] if isinstance(in_axes, (tuple, list)) else in_axes
        if isinstance(axis, int):
            sizes += [leaf.shape[axis] for leaf in tree_util.tree_leaves(argument) if getattr(leaf, "shape", ())]
        elif axis is not None:
            sizes += [x.shape[a] for a, x in zip(tree_util.tree_leaves(axis), tree_util.tree_leaves(argument)) if getattr(x, "shape", ())]
    sizes += [leaf.shape[0] for leaf in tree_util.tree_leaves(kwargs) if getattr(leaf, "shape", ())]
    return sizes[0] if sizes else None
