"""Explicit mesh axes: shardings in types, and the functions that change them."""
import functools

from capibara import _core, _tracebacks
from capibara.jax._abstract_mesh import AbstractMesh, TypeSharding, concrete_mesh, get_abstract_mesh, use_abstract_mesh
from capibara.jax._axes import AxisType
from capibara.jax._mesh import Mesh, PartitionSpec, Unconstrained
from capibara.jax._placing import spread
from capibara.jax._sharding import NamedSharding
from capibara.jax.tree_util import tree_leaves, tree_map


def canonical(sharding, operation, check_mesh=True):
    """Resolves a specification or sharding to the sharding of a type in the context mesh; None stays None."""
    if sharding is None or (isinstance(sharding, NamedSharding) and sharding.mesh.empty):
        return None
    if not isinstance(sharding, (NamedSharding, PartitionSpec)):
        raise TypeError(f"`out_sharding` argument of {operation} only supports instances of `NamedSharding` or `PartitionSpec`. Got "
                        f"{sharding} of type: {type(sharding)}")
    around = get_abstract_mesh()
    if isinstance(sharding, PartitionSpec):
        if around.empty:
            raise ValueError("Using PartitionSpec when you are not under a mesh context is not allowed. Please pass a "
                             "NamedSharding instance "
                             f"or enter into a mesh context via `jax.set_mesh`. Got {sharding}")
        sharding = TypeSharding(around, sharding)
    else:
        own = sharding.mesh.abstract_mesh
        if isinstance(sharding, TypeSharding) and sharding.memory_kind is not None:
            raise ValueError("sharding with memory_kind is not allowed. Please use `jax.device_put` to transfer to different memory "
                             "spaces. "
                             f"Got sharding={sharding}")
        if own.are_all_axes_auto and around.are_all_axes_auto:
            check_mesh = False
        if check_mesh and not around.empty and own != around:
            raise ValueError(f"Context mesh {around} should match the mesh of sharding {own} passed to {operation}.")
        sharding = TypeSharding(own, sharding.spec)
    for name in _named(sharding.spec):
        kind = sharding.mesh.type_of(name)
        if kind is not AxisType.Explicit:
            raise ValueError(f"PartitionSpec passed to {operation} cannot contain axis names that are of type Auto or Manual. Got "
                             f"PartitionSpec: {sharding.spec} with axis name: {name} of type: {kind}.")
    return sharding


def _named(spec):
    names = [name for entry in spec.partitions for name in (entry if isinstance(entry, tuple) else (entry,)) if isinstance(name, str)]
    return [*names, *spec.unreduced, *spec.reduced]


def placement_of(sharding, mesh=None):
    """(the core's form of a type's sharding, True if its devices are known)."""
    axes = [[entry] if isinstance(entry, str) else list(entry) if isinstance(entry, tuple) else [] for entry in sharding.spec.partitions]
    own = sharding.mesh
    grid = mesh if mesh is not None else concrete_mesh(own)
    ids = [device.id for device in grid.devices.flat] if grid is not None else list(range(own.size))
    platform = next(iter(grid.devices.flat))._placement_platform if grid is not None else "cpu"
    placement = _core.NamedSharding(platform, ids, list(own.axis_names), list(own.axis_sizes), axes, "",
                                    axis_types=[kind.value for kind in own.axis_types], unreduced=sorted(sharding.spec.unreduced),
                                    reduced=sorted(sharding.spec.reduced))
    return placement, grid is not None


def resharded(array, sharding, mesh=None):
    """The array with this sharding in its type; entries of None beyond its dimensions are dropped."""
    if not any(sharding.spec.partitions[array.ndim:]):
        sharding = sharding.update(spec=sharding.spec.update(partitions=sharding.spec.partitions[:array.ndim]))
    if len(sharding.spec) > array.ndim:
        hint = " For scalars the PartitionSpec should be P()" if array.ndim == 0 else ""
        raise ValueError(f"PartitionSpec {sharding.spec} is only valid for values of rank at least "
                         f"{len(sharding.spec)}, but was applied to a "
                         f"value of rank {array.ndim}.{hint}")
    return _core.reshard(array, *placement_of(sharding, mesh))


def requested(out_sharding, operation):
    """The core's form of a library function's `out_sharding` argument; None if it requests nothing."""
    sharding = canonical(out_sharding, "einsum" if operation == "jnp.einsum" else operation)
    if sharding is None or not sharding.mesh.explicit_axes:
        return None
    return placement_of(sharding)


def placed_as(array, out_sharding, operation):
    """The array with the sharding that a function's `out_sharding` argument requests."""
    sharding = canonical(out_sharding, operation)
    return array if sharding is None or not sharding.mesh.explicit_axes else resharded(array, sharding)


def reshard(xs, out_shardings):
    """Changes the sharding in the type of every leaf of a tree; the values stay the same."""
    leaves, structure = _core.tree_flatten(xs)
    results = []
    for leaf, target in zip(leaves, spread(out_shardings, xs, "reshard out_shardings")):
        sharding = canonical(target, "reshard", check_mesh=False)
        if sharding is None:
            raise ValueError("Reshard should only be used with out_shardings which are non-None and have a non-empty mesh. Got sharding "
                             f"{target}.")
        mesh = target.mesh if isinstance(target, NamedSharding) and isinstance(target.mesh, Mesh) else None
        results.append(resharded(_core.as_array(leaf), sharding, mesh))
    return structure.unflatten(results)


def _changed_mesh(axes, kind, operation, shardings=None):
    """(previous mesh, mesh with these axes changed to another type, the axes); None if there is no mesh."""
    around = get_abstract_mesh()
    given = None
    for sharding in tree_leaves(shardings, is_leaf=lambda leaf: isinstance(leaf, (NamedSharding, PartitionSpec))):
        if not isinstance(sharding, NamedSharding):
            continue
        if given is not None and given != sharding.mesh.abstract_mesh:
            raise ValueError(f"Shardings passed to {operation} should have the same mesh. Got one mesh {given} and another {sharding.mesh}")
        given = sharding.mesh.abstract_mesh
    if given is not None and not around.empty and given != around:
        raise ValueError(f"Context mesh {around} must match the mesh passed to shardings {given}. Recommended approach is to use "
                         "`jax.set_mesh` context manager.")
    mesh = around if not around.empty else given
    if mesh is None:
        return None
    axes = mesh.axis_names if axes is None else axes if isinstance(axes, tuple) else (axes,)
    for name in axes:
        if mesh.type_of(name) is AxisType.Manual:
            raise NotImplementedError("Going from `Manual` AxisType to `Auto` or `Explicit` AxisType is not allowed. Please file a bug at "
                                      "https://github.com/jax-ml/jax/issues with your use case")
    return mesh, mesh.update_axis_types(dict.fromkeys(axes, kind)), axes


def explicit_part(spec, mesh):
    """The specification without the axes that are not Explicit."""
    def kept(names):
        return tuple(name for name in names if mesh.type_of(name) is AxisType.Explicit)
    entries = [None if entry is None or isinstance(entry, Unconstrained) else kept(entry if isinstance(entry, tuple) else (entry,))
               for entry in spec.partitions]
    return PartitionSpec(*entries, unreduced=frozenset(kept(spec.unreduced)), reduced=frozenset(kept(spec.reduced)))


def _typed_spec(leaf, mesh):
    return explicit_part(_core.type_of(leaf).sharding.spec, mesh)


def _chosen(given, kwargs, word):
    if given is not None:
        return given
    if word not in kwargs:
        raise TypeError(f"Missing required keyword argument: '{word}'")
    return kwargs.pop(word)


def auto_axes(f=None, /, *, axes=None, out_sharding=None):
    """A function inside which mesh axes are Auto, left to the compiler; its results get `out_sharding` in their types."""
    if f is None:
        return lambda function: auto_axes(function, axes=axes, out_sharding=out_sharding)

    @functools.wraps(f)
    def with_auto_axes(*args, **kwargs):
        expected = _chosen(out_sharding, kwargs, "out_sharding")
        change = _changed_mesh(axes, AxisType.Auto, "auto_axes", expected)
        if change is None or set(change[0].auto_axes) == set(change[2]):
            return f(*args, **kwargs)
        with use_abstract_mesh(change[1]):
            args = reshard(args, tree_map(lambda leaf: _typed_spec(leaf, change[1]), args))
            result = f(*args, **kwargs)
        return reshard(result, expected)

    return with_auto_axes


def explicit_axes(f=None, /, *, axes=None, in_sharding=None):
    """A function inside which mesh axes are Explicit, part of types; its arguments get `in_sharding`."""
    if f is None:
        return lambda function: explicit_axes(function, axes=axes, in_sharding=in_sharding)

    @functools.wraps(f)
    def with_explicit_axes(*args, **kwargs):
        expected = _chosen(in_sharding, kwargs, "in_sharding")
        change = _changed_mesh(axes, AxisType.Explicit, "explicit_axes")
        if change is None:
            raise ValueError("Context mesh cannot be empty. Please use `jax.set_mesh` API to enter into a mesh context when using "
                             "`explicit_axes` API.")
        with use_abstract_mesh(change[1]):
            args = reshard(args, expected)
            result = f(*args, **kwargs)
        around = get_abstract_mesh()
        return reshard(result, tree_map(lambda leaf: _typed_spec(leaf, around), result))

    return with_explicit_axes


def at_asking(array, key, method, values, out_sharding, options):
    """array.at[key].get(out_sharding=...) and the other methods of at."""
    sharding = canonical(out_sharding, f".at[...].{method}")
    if method == "get":
        options["fill_value"], given = values, ()
    else:
        given = (values if isinstance(values, (list, tuple)) else _core.as_array(values),)
    entries = key if isinstance(key, tuple) else (key,)
    arrays = [i for i, entry in enumerate(entries) if isinstance(entry, _core.Array)]

    def updated(array, indices, given):
        whole = list(entries)
        for i, index in zip(arrays, indices):
            whole[i] = index
        return getattr(array.at[tuple(whole) if isinstance(key, tuple) else whole[0]], method)(*given, **options)

    if sharding is not None and sharding.mesh.explicit_axes:
        updated = auto_axes(updated, axes=sharding.mesh.explicit_axes, out_sharding=sharding)
    return updated(array, [entries[i] for i in arrays], given)


__all__ = ["AbstractMesh", "auto_axes", "explicit_axes", "reshard"]

_tracebacks.guard(__name__)
