"""Meshes of devices with named axes, and specifications of how they split the dimensions of arrays."""
import collections
import enum
import threading

from capibara import _tracebacks
from capibara.jax._devices import devices as _all_devices  # where `devices` is an argument


class AxisType(enum.Enum):
    """Who decides along an axis of a mesh: the compiler."""
    Auto = enum.auto()

    def __repr__(self):
        return self.name


class Unconstrained:
    def __repr__(self):
        return "UNCONSTRAINED"


class PartitionSpec:
    """For each dimension of an array the mesh axes that split it: P('x', None, ('y', 'z'))."""

    UNCONSTRAINED = Unconstrained()

    def __init__(self, *partitions):
        self._entries = tuple(_entry(one) for one in partitions)

    def __iter__(self):
        return iter(self._entries)

    def __len__(self):
        return len(self._entries)

    def __getitem__(self, index):
        return self._entries[index]

    def __add__(self, other):
        return PartitionSpec(*self._entries, *tuple(other))

    def __radd__(self, other):
        return PartitionSpec(*tuple(other), *self._entries)

    def __eq__(self, other):
        return isinstance(other, PartitionSpec) and self._entries == other._entries

    def __hash__(self):
        return hash(self._entries)

    def __repr__(self):
        return f"P({', '.join(map(repr, self._entries))}{',' if len(self._entries) == 1 else ''})"

    def index(self, value):
        return self._entries.index(value)

    def count(self, value):
        return self._entries.count(value)


P = PartitionSpec


def _entry(entry):
    if isinstance(entry, (tuple, list)):
        return entry[0] if len(entry) == 1 else tuple(entry) if entry else None
    if entry is None or isinstance(entry, (str, Unconstrained)):
        return entry
    raise ValueError(f"PartitionSpec: an entry must be None, a name, a tuple of names or UNCONSTRAINED, got {entry!r}")


_open_meshes = threading.local()


class NamedAxes:
    """What meshes with and without devices share: axes with names and sizes."""

    @property
    def shape(self):
        return collections.OrderedDict(self.shape_tuple)

    @property
    def shape_tuple(self):
        return tuple(zip(self.axis_names, self.axis_sizes))


class Mesh(NamedAxes):
    """A grid of devices whose axes have names."""

    def __init__(self, devices, axis_names, axis_types=None):
        import numpy as np
        if not isinstance(devices, np.ndarray):
            listed = np.empty(np.shape(np.array(devices, dtype=object)), dtype=object)
            listed[...] = devices
            devices = listed
        self.axis_names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        self.devices = devices.copy()
        self.devices.flags.writeable = False
        if devices.ndim != len(self.axis_names):
            raise ValueError(f"Mesh requires the ndim of its first argument (`devices`) to equal the length of its second argument "
                             f"(`axis_names`), but got devices.ndim == {devices.ndim} and len(axis_names) == {len(self.axis_names)}.")
        if len(set(self.axis_names)) != len(self.axis_names):
            raise ValueError(f"Mesh requires its axis_names to be distinct, got {self.axis_names}")
        self.axis_types = _axis_types(axis_types, len(self.axis_names))
        self._key = (self.axis_names, self.devices.shape, tuple(self.devices.flat))

    @property
    def axis_sizes(self):
        return self.devices.shape

    @property
    def size(self):
        return self.devices.size

    @property
    def empty(self):
        return self.devices.ndim == 0 or self.devices.size == 0

    @property
    def device_ids(self):
        import numpy as np
        return np.vectorize(lambda device: device.id, otypes=[int])(self.devices)

    @property
    def local_devices(self):
        return [device for device in self.devices.flat if device.process_index == devices()[0].client_process]

    @property
    def is_multi_process(self):
        return len(self.local_devices) != self.size

    def __enter__(self):
        _stack().append(self)
        return self

    def __exit__(self, *exception):
        _stack().pop()
        return False

    def __eq__(self, other):
        return isinstance(other, Mesh) and self._key == other._key

    def __hash__(self):
        return hash(self._key)

    def __str__(self):
        sizes = "".join(f"'{name}': {size}, " for name, size in self.shape_tuple)
        return f"Mesh({sizes}axis_types={self.axis_types})"

    def __repr__(self):
        return f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}, axis_types={self.axis_types})"


def _stack():
    if not hasattr(_open_meshes, "stack"):
        _open_meshes.stack = []
    return _open_meshes.stack


def current_mesh():
    """The innermost mesh of `with mesh:` and `with set_mesh(mesh):` on this thread; None where there is none."""
    return _stack()[-1] if _stack() else None


class set_mesh:
    """Specifications without a mesh mean this one, while the context lasts."""

    def __init__(self, mesh):
        if not isinstance(mesh, Mesh):
            raise ValueError(f"Expected mesh of type `jax.sharding.Mesh`. Got {type(mesh)}")
        self._mesh = mesh

    def __enter__(self):
        return self._mesh.__enter__()

    def __exit__(self, *exception):
        return self._mesh.__exit__(*exception)


def _axis_types(given, count):
    types = (AxisType.Auto,) * count if given is None else tuple(given) if isinstance(given, (tuple, list)) else (given,)
    if len(types) != count:
        raise ValueError(f"Number of axis names should match the number of axis_types. Got {count} names and axis_types={types}")
    for one in types:
        if one is not AxisType.Auto:
            raise NotImplementedError(f"Mesh: axis types are Auto, got {one!r}")
    return types


def make_mesh(axis_shapes, axis_names, axis_types=None, *, devices=None):
    """A mesh of the first devices. All axes are Auto: the compiler decides how values lie that nothing is said of."""
    import math

    import numpy as np
    axis_shapes, axis_names = tuple(axis_shapes), tuple(axis_names)
    if len(axis_shapes) != len(axis_names):
        raise ValueError(f"Number of axis names should match the number of axis_shapes. Got axis_names={axis_names} and axis_shapes={axis_shapes}")
    chosen = list(_all_devices() if devices is None else devices)
    count = math.prod(axis_shapes)
    if len(chosen) < count:
        raise ValueError(f"Number of devices {len(chosen)} must be >= the product of mesh_shape {axis_shapes}")
    grid = np.empty(count, dtype=object)
    grid[:] = chosen[:count]
    return Mesh(grid.reshape(axis_shapes), axis_names, axis_types)


_tracebacks.guard(__name__)
