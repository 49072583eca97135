"""jax.shard_map: a function that every device of a mesh runs on its shard of the arguments."""
import functools
import math

from capibara import _core, _lifted_maps, _lifting, _tracebacks
from capibara.jax import _shard_map_errors as errors, tree_util
from capibara.jax._abstract_mesh import AbstractMesh, get_abstract_mesh, use_abstract_mesh
from capibara.jax._api import _wraps
from capibara.jax._mesh import AxisType, Mesh, PartitionSpec, current_mesh
from capibara.jax._placing import spread
from capibara.jax._sharding import NamedSharding, sharding_of

_devices_of = {}  # {axes: concrete mesh} of the shard_maps being traced


class InferFromArgs:
    """in_specs inferred from the arguments' own shardings."""

    def __repr__(self):
        return "jax.sharding.Infer"


Infer = InferFromArgs()


def shard_map(f=None, /, *, out_specs, in_specs=Infer, mesh=None, axis_names=frozenset(), check_vma=True):
    """Maps a function over the devices of a mesh: it sees one device's shards and communicates by the collectives of lax."""
    if f is None:
        return functools.partial(shard_map, out_specs=out_specs, in_specs=in_specs, mesh=mesh, axis_names=axis_names,
                                 check_vma=check_vma)
    if not callable(f):
        raise TypeError(f"shard_map requires a callable for its first argument, but got {f!r} of type {type(f)}.")

    def call(f, in_specs, out_specs, args):
        return _Call(f, mesh, in_specs, out_specs, axis_names, check_vma).run(args)

    def mapped(*args):
        if _lifting.types and any(hasattr(spec, "to_lo") for spec in _core.tree_leaves((in_specs, out_specs))):
            return _lifted_maps.shard_mapped(call, f, in_specs, out_specs, args)
        return call(f, in_specs, out_specs, args)

    return _wraps(f, mapped)


def smap(f=None, /, *, in_axes=Infer, out_axes, axis_name):
    """Maps a function along one axis of the context mesh; the dimension to split is given by number, as for `vmap`."""
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    if isinstance(axis_name, (list, tuple)):
        raise TypeError(f"smap axis_name should be a `str` or a `Hashable`, but got {axis_name}")
    if in_axes is not Infer and not isinstance(in_axes, (int, tuple, type(None))):
        raise TypeError("smap in_axes must be an int, None, jax.sharding.Infer, or a tuple of entries corresponding to the positional "
                        f"arguments passed to the function, but got {in_axes}.")
    for word, axes, allowed in (("in_axes", in_axes, "an int, None, jax.sharding.Infer, or"), ("out_axes", out_axes, "an int, None, or")):
        if axes is not Infer and not all(isinstance(leaf, int) for leaf in tree_util.tree_leaves(axes)):
            raise TypeError(f"smap {word} must be {allowed} (nested) container with those types as leaves, but got {axes}.")

    def specs(axes):
        def spec(axis):
            return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, axis_name)
        return axes if axes is Infer else tree_util.tree_map(spec, axes, is_leaf=lambda leaf: leaf is None)

    def mapped(*args):
        return _Call(f, None, specs(in_axes), specs(out_axes), {axis_name}, True, "smap").run(args)

    return _wraps(f, mapped)


class _Call:
    """One call of a mapped function."""

    def __init__(self, function, mesh, in_specs, out_specs, axis_names, check_vma, operation="shard_map"):
        self.function, self.in_specs, self.out_specs, self.check_vma = function, in_specs, out_specs, check_vma
        self.mesh, self.is_abstract = _mesh_in_use(mesh)
        if not isinstance(axis_names, (set, frozenset)):
            raise TypeError("`axis_names` argument of shard_map should be of type `frozenset` or `set`. Got type: "
                            f"{type(axis_names)}")
        self.manual = [name for name in self.mesh.axis_names if not axis_names or name in axis_names]
        for name in axis_names:
            if name not in self.mesh.axis_names:
                raise ValueError(f"jax.shard_map requires axis_names={frozenset(axis_names)} to be a subset of "
                                 f"mesh.axis_names={frozenset(self.mesh.axis_names)}")
        if in_specs is Infer and any(self.mesh.type_of(name) is not AxisType.Explicit for name in self.manual):
            raise TypeError(errors.nothing_to_infer(operation, self.mesh, self.manual))
        for word, specs in (("in_specs", in_specs), ("out_specs", out_specs)):
            _check_sums(word, specs, self.mesh, self.manual)
        if self.is_abstract:
            self.manual = [name for name in self.manual if name not in self.mesh.manual_axes]

    def run(self, args):
        leaves, tree = _core.tree_flatten(args)
        specs = self._specs_of_arguments(args, leaves)
        arrays = [leaf if spec is None else _core.as_array(leaf) for leaf, spec in zip(leaves, specs)]
        self._check_devices(arrays)
        self._check_arguments(args, arrays, specs)
        out_tree = []

        def on_leaves(parts):
            parts = iter(parts)
            # A leaf whose specification is None is not mapped: it is passed to the function unchanged.
            given = [leaf if spec is None else next(parts) for leaf, spec in zip(leaves, specs)]
            with use_abstract_mesh(self._mesh_inside()):
                result = self.function(*tree.unflatten(given))
            out_leaves, structure = _core.tree_flatten(result)
            out_tree.append(structure)
            return out_leaves

        mapped = [(array, _spec_of(spec)) for array, spec in zip(arrays, specs) if spec is not None]
        results = _core.shard_map(on_leaves, self.function, [array for array, _ in mapped], _placement(self.mesh), self.is_abstract,
                                  [axes for _, axes in mapped], self.manual, self.check_vma,
                                  lambda rows: self._specs_of_results(out_tree[-1].unflatten(range(len(rows))), rows))
        return out_tree[-1].unflatten(results)

    def _check_devices(self, arrays):
        """Outside a program, an abstract mesh takes the devices of the arguments."""
        if not isinstance(self.mesh, AbstractMesh) or self.is_abstract or any(isinstance(array, _core.Tracer) for array in arrays):
            return
        found = False
        for array in arrays:
            sharding = sharding_of(array) if isinstance(array, _core.ArrayImpl) else None
            if not isinstance(sharding, NamedSharding):
                continue
            if sharding.mesh.shape_tuple != self.mesh.shape_tuple:
                raise ValueError(errors.other_mesh(sharding.mesh, self.mesh, _core.type_of(array)))
            _devices_of[self.mesh.shape_tuple] = sharding.mesh
            found = True
        if not found:
            raise ValueError(errors.NO_DEVICES)

    def _mesh_inside(self):
        """The mesh axes inside the function."""
        mesh = self.mesh if isinstance(self.mesh, AbstractMesh) else self.mesh.abstract_mesh
        inside = mesh.update_axis_types(dict.fromkeys(self.manual, AxisType.Manual))
        if isinstance(self.mesh, Mesh):
            _devices_of[inside.shape_tuple] = self.mesh
        return inside

    def _specs_of_arguments(self, args, leaves):
        if isinstance(self.in_specs, InferFromArgs):
            return [_part_of(_own_spec(leaf), self.manual) for leaf in leaves]
        _check_specs("in_specs", self.in_specs, self.manual)
        in_specs = tuple(self.in_specs) if isinstance(self.in_specs, list) else self.in_specs
        try:
            return spread(in_specs, args, "shard_map in_specs")
        except ValueError as error:
            if isinstance(in_specs, tuple) and len(in_specs) != len(args):
                raise ValueError(errors.count_of_specs(self.function, in_specs, args)) from None
            raise error

    def _check_arguments(self, args, arrays, specs):
        explicit = set(self.manual) == set(self.mesh.axis_names) and self.mesh.are_all_axes_explicit
        for i, (array, spec) in enumerate(zip(arrays, specs)):
            if spec is None:
                continue
            own = _core.type_of(array)
            if explicit:
                expected = spec.update(partitions=(*spec.partitions, *(None,) * (array.ndim - len(spec))))
                if own.sharding.spec != expected:
                    raise ValueError(errors.other_sharding(expected, own))
            if len(spec) > array.ndim:
                raise ValueError(errors.long_argument(self.function, args, i, array, spec))
            for dim, entry in enumerate(_axes(spec)):
                if array.shape[dim] % math.prod(self.mesh.shape[name] for name in entry):
                    raise ValueError(errors.uneven_argument(self.function, self.mesh, args, i, array, spec, dim, entry))

    def _specs_of_results(self, result, rows):
        if self.out_specs is None and rows:
            raise TypeError(errors.no_specs("out_specs"))
        _check_specs("out_specs", self.out_specs, self.manual)
        specs = spread(self.out_specs, result, "shard_map out_specs")
        for spec, (shape, text, *_) in zip(specs, rows):
            if len(spec) > len(shape):
                raise ValueError(errors.long_result(self.function, spec, shape, text))
        if self.check_vma:
            self._check_varying(specs, rows)
        return [_spec_of(spec) for spec in specs]

    def _check_varying(self, specs, rows):
        found = []
        for spec, (_, _, varying, sums) in zip(specs, rows):
            named = [name for entry in _axes(spec) for name in entry]
            own = [name for name in varying if name in self.manual]
            if {*own, *sums} - {*named, *spec.unreduced, *spec.reduced}:
                found.append((spec, named, own))
        if found:
            raise ValueError(errors.varying_results(self.function, self.mesh, found))


def _mesh_in_use(mesh):
    """(the mesh of a call, True if it is the mesh of an enclosing shard_map)."""
    around = get_abstract_mesh()
    if mesh is None:
        if around.manual_axes:
            return around, True
        mesh = current_mesh()
        if mesh is None:
            raise ValueError("The context mesh cannot be empty. Use `jax.set_mesh(mesh)` to enter into a mesh context")
        return mesh, True
    if not isinstance(mesh, (Mesh, AbstractMesh)):
        raise TypeError("shard_map requires a `jax.sharding.Mesh` or a `jax.sharding.AbstractMesh` instance for its second argument, "
                        f"but got {mesh} of type {type(mesh)}.")
    if mesh.empty:
        raise ValueError(f"shard_map requires a non-empty mesh. Got {mesh}")
    if not around.empty and mesh.abstract_mesh != around:
        raise ValueError(f"The context mesh {around} should match the mesh passed to shard_map {mesh}")
    return (around, True) if around.manual_axes else (mesh, False)


def _placement(mesh):
    """The core's form of the mesh."""
    grid = _devices_of.get(mesh.shape_tuple) if isinstance(mesh, AbstractMesh) else mesh
    ids = [device.id for device in grid.devices.flat] if grid is not None else list(range(mesh.size))
    platform = next(iter(grid.devices.flat))._placement_platform if grid is not None else "cpu"
    return _core.NamedSharding(platform, ids, list(mesh.axis_names), list(mesh.axis_sizes), [], "",
                               axis_types=[kind.value for kind in mesh.axis_types])


def _own_spec(leaf):
    typed = _core.type_of(leaf).sharding
    sharding = sharding_of(leaf) if isinstance(leaf, _core.ArrayImpl) and not typed.mesh.explicit_axes else typed
    return sharding.spec if isinstance(sharding, NamedSharding) else PartitionSpec()


def _part_of(spec, manual):
    """The specification without the axes that are not mapped."""
    entries = []
    for entry in spec:
        names = [name if name in manual else None for name in (entry if isinstance(entry, tuple) else (entry,))]
        while names and names[-1] is None:
            names.pop()
        if None in names:
            raise ValueError(f"Invalid spec: {spec}")
        entries.append(tuple(names) or None)
    return PartitionSpec(*entries, unreduced=spec.unreduced, reduced=spec.reduced)


def _axes(spec):
    return [[entry] if isinstance(entry, str) else list(entry or ()) for entry in spec]


def _spec_of(spec):
    """The core's form of the specification."""
    return _axes(spec), list(spec.unreduced), list(spec.reduced)


def _check_specs(word, specs, manual):
    for spec in tree_util.tree_leaves(specs, is_leaf=lambda leaf: isinstance(leaf, PartitionSpec)):
        if not isinstance(spec, PartitionSpec):
            raise TypeError(errors.not_a_spec(word, spec))
        for name in (name for entry in _axes(spec) for name in entry):
            if name not in manual:
                raise ValueError(errors.foreign_axis(word, name, manual))


def _check_sums(word, specs, mesh, manual):
    """Raises for unreduced or reduced axes in specs unless the map is fully manual and these axes are Explicit."""
    if specs is Infer:
        return
    for spec in tree_util.tree_leaves(specs, is_leaf=lambda leaf: isinstance(leaf, PartitionSpec)):
        if not isinstance(spec, PartitionSpec) or not (spec.unreduced or spec.reduced):
            continue
        if set(manual) != set(mesh.axis_names):
            raise NotImplementedError(f"unreduced/reduced can only be passed to {word} when shard_map is in full manual mode. Got mesh "
                                      f"axis names {mesh.axis_names}, manual_axes: {frozenset(manual)}, specs: {spec}.")
        for kind, axes in (("unreduced", spec.unreduced), ("reduced", spec.reduced)):
            if any(mesh.type_of(name) is not AxisType.Explicit for name in axes):
                raise ValueError(f"{kind} in {word} {spec} can only be used when the mesh passed to shard_map contains axis names all of "
                                 f"type `Explicit`. Got mesh {mesh}")


_tracebacks.guard(__name__)
