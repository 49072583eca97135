"""Abstract meshes, the context mesh, and the sharding in an array's type."""
import math
import threading

from capibara import _core
from capibara.jax._axes import AbstractDevice, AbstractMesh, AxisType, abstract
from capibara.jax._mesh import PartitionSpec, core_mesh, current_mesh, set_mesh_in_use
from capibara.jax._sharding import NamedSharding, Sharding


no_mesh = AbstractMesh((), ())


class TypeSharding(NamedSharding):
    """The sharding in the type of an array: which axes of an abstract mesh split which dimension."""

    def __init__(self, mesh, spec, *, memory_kind=None):
        self.mesh, self.spec = mesh, spec if isinstance(spec, PartitionSpec) else PartitionSpec(*spec)
        if memory_kind not in (None, "device", "pinned_host", "unpinned_host"):
            raise ValueError(f"Got invalid memory kind: {memory_kind}. Valid memory kinds are: device, pinned_host, unpinned_host")
        self._memory_kind = memory_kind

    num_devices = property(lambda self: self.mesh.size)
    memory_kind = property(lambda self: self._memory_kind)
    splits_nothing = property(lambda self: self.mesh.empty)
    is_fully_replicated = property(lambda self: not self.spec.unreduced and all(entry is None for entry in self.spec.partitions))

    def shard_shape(self, global_shape):
        """The shape of each part."""
        shape = list(global_shape)
        for dim, entry in enumerate(self.spec.partitions):
            names = entry if isinstance(entry, tuple) else (entry,) if isinstance(entry, str) else ()
            shape[dim] //= math.prod(self.mesh.shape[name] for name in names)
        return tuple(shape)

    @property
    def device_set(self):
        raise ValueError("device_set: the sharding of a type has no devices, its mesh is abstract")

    def is_equivalent_to(self, other, ndim):
        return self == other

    def update(self, *, mesh=None, spec=None):
        """A copy with another mesh or specification."""
        return TypeSharding(self.mesh if mesh is None else mesh, self.spec if spec is None else spec)

    def __eq__(self, other):
        return isinstance(other, TypeSharding) and (self.mesh, self.spec) == (other.mesh, other.spec)

    def __hash__(self):
        return hash((self.mesh, self.spec))

    def __repr__(self):
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec})"


NamedSharding.of_types = TypeSharding


def type_sharding(rank, names=(), sizes=(), kinds=(), spec=None, unreduced=(), reduced=()):
    """The sharding of a type: its Explicit axes, or the context mesh if it has none."""
    if not names:
        return TypeSharding(get_abstract_mesh(), PartitionSpec(*(None,) * rank))
    mesh = AbstractMesh(sizes, names, tuple(AxisType(kind) for kind in kinds))

    def of_types(axes):  # sums over manual axes are not part of the sharding
        return frozenset(name for name in axes if mesh.type_of(name) is not AxisType.Manual)
    return TypeSharding(mesh, PartitionSpec(*map(tuple, spec), unreduced=of_types(unreduced), reduced=of_types(reduced)))


_local = threading.local()


def _abstract_stack():
    if not hasattr(_local, "stack"):
        _local.stack = []
    return _local.stack


class use_abstract_mesh:
    """A context that sets the mesh axes visible to programs."""

    def __init__(self, mesh):
        if not isinstance(mesh, AbstractMesh):
            raise ValueError(f"Expected mesh of type `jax.sharding.AbstractMesh`. Got type: {type(mesh)}")
        self._mesh = mesh

    def __enter__(self):
        before = get_abstract_mesh()
        if not before.empty and not self._mesh.empty and before.size != self._mesh.size:
            raise ValueError(f"use_abstract_mesh cannot change the size of the mesh. Got new mesh: {self._mesh} with "
                             f"size={self._mesh.size} "
                             f"and prev mesh: {before} with size={before.size}")
        _abstract_stack().append(self._mesh)
        self._before = _core.swap_context_mesh(None if self._mesh.empty else core_mesh(self._mesh, concrete_mesh(self._mesh)))
        return self._mesh

    def __exit__(self, *exception):
        _abstract_stack().pop()
        _core.swap_context_mesh(self._before)
        return False


def concrete_mesh(mesh):
    """The context mesh, if it has devices for the axes of this mesh; otherwise None."""
    around = current_mesh()
    return around if around is not None and around.shape_tuple == mesh.shape_tuple else None


def get_abstract_mesh():
    """The axes of the context mesh; the empty mesh if there is none."""
    if _abstract_stack():
        return _abstract_stack()[-1]
    mesh = set_mesh_in_use()
    return no_mesh if mesh is None else abstract(mesh)


__all__ = ["AbstractDevice", "AbstractMesh", "Sharding", "get_abstract_mesh", "type_sharding", "use_abstract_mesh"]
