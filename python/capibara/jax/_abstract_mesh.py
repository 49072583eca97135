"""Meshes without devices, and the sharding that is part of an array's type."""
import math

from capibara.jax._mesh import AxisType, NamedAxes, PartitionSpec, current_mesh
from capibara.jax._sharding import NamedSharding, Sharding


class AbstractMesh(NamedAxes):
    """Named axes and their sizes, without devices."""

    def __init__(self, axis_sizes, axis_names, axis_types=None):
        self.axis_sizes, self.axis_names = tuple(axis_sizes), tuple(axis_names)
        if len(self.axis_sizes) != len(self.axis_names):
            raise ValueError(f"AbstractMesh: there must be as many axis sizes as axis names, got {self.axis_sizes} and {self.axis_names}")
        self.axis_types = (AxisType.Auto,) * len(self.axis_names) if axis_types is None else tuple(axis_types)
        if len(self.axis_types) != len(self.axis_names):
            raise ValueError(f"AbstractMesh: there must be as many axis types as axis names, got {self.axis_types} and {self.axis_names}")

    @property
    def size(self):
        return math.prod(self.axis_sizes) if self.axis_sizes else 0

    @property
    def empty(self):
        return not self.axis_names

    @property
    def abstract_mesh(self):
        return self

    @property
    def auto_axes(self):
        return self.axis_names

    explicit_axes = manual_axes = ()
    are_all_axes_explicit = are_all_axes_manual = False

    @property
    def are_all_axes_auto(self):
        return not self.empty

    def __eq__(self, other):
        return isinstance(other, AbstractMesh) and (self.shape_tuple, self.axis_types) == (other.shape_tuple, other.axis_types)

    def __hash__(self):
        return hash((self.shape_tuple, self.axis_types))

    def __repr__(self):
        sizes = ", ".join(f"'{name}': {size}" for name, size in self.shape_tuple) or "()"
        return f"AbstractMesh({sizes}, axis_types={self.axis_types})"


no_mesh = AbstractMesh((), ())


class TypeSharding(NamedSharding):
    """The sharding in the type of an array: which axes of a mesh without devices split which dimension."""

    def __init__(self, mesh, spec):
        self.mesh, self.spec = mesh, spec

    num_devices = property(lambda self: self.mesh.size)
    memory_kind = None
    splits_nothing = property(lambda self: self.mesh.empty)
    is_fully_replicated = property(lambda self: all(entry is None for entry in self.spec))

    def shard_shape(self, global_shape):
        """The shape of each part: all of it, since no axis splits it."""
        return tuple(global_shape)

    @property
    def device_set(self):
        raise ValueError("device_set: the sharding of a type has no devices, its mesh is abstract")

    def is_equivalent_to(self, other, ndim):
        return self == other

    def update(self, *, mesh=None, spec=None):
        """The same with another mesh or specification."""
        return TypeSharding(self.mesh if mesh is None else mesh, self.spec if spec is None else spec)

    def __eq__(self, other):
        return isinstance(other, TypeSharding) and (self.mesh, self.spec) == (other.mesh, other.spec)

    def __hash__(self):
        return hash((self.mesh, self.spec))

    def __repr__(self):
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec})"


def type_sharding(rank):
    """How values of a type are placed: split along no axis, since all axes of meshes are left to the compiler."""
    return TypeSharding(no_mesh, PartitionSpec(*(None,) * rank))


def get_abstract_mesh():
    """The axes of the mesh in whose context the program is; without one, the mesh without axes."""
    mesh = current_mesh()
    return no_mesh if mesh is None else AbstractMesh(mesh.axis_sizes, mesh.axis_names, mesh.axis_types)


__all__ = ["AbstractMesh", "Sharding", "get_abstract_mesh", "type_sharding"]
