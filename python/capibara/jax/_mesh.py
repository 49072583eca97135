"""Meshes of devices with named axes, and specifications of how these split the dimensions of arrays."""
import contextlib
import threading
import weakref

from capibara import _core, _tracebacks
from capibara.jax._axes import AxisType, NamedAxes, abstract, checked_types
from capibara.jax._devices import devices as _all_devices  # where `devices` is an argument


class Unconstrained:
    """A singleton, also after pickling."""

    def __reduce__(self):
        return "UNCONSTRAINED"

    def __repr__(self):
        return "UNCONSTRAINED"


_specifications = weakref.WeakValueDictionary()


def _specification(entries, unreduced, reduced):
    return PartitionSpec(*entries, unreduced=unreduced, reduced=reduced)


class PartitionSpec:
    """The mesh axes that split each dimension of an array: P('x', None, ('y', 'z')).

    Unlike in jax, dimensions may have names, as documentation: P(batch='x', features=None) is P('x', None).
    """

    UNCONSTRAINED = Unconstrained()

    def __new__(cls, *partitions, unreduced=frozenset(), reduced=frozenset(), **dimensions):
        if partitions and dimensions:
            raise TypeError("PartitionSpec: either all dimensions have names or none has, got "
                            f"{len(partitions)} without and {', '.join(dimensions)}")
        entries = tuple(_entry(one) for one in partitions or tuple(dimensions.values()))
        unreduced, reduced = _axis_set("unreduced", unreduced), _axis_set("reduced", reduced)
        key = entries, unreduced, reduced
        if (known := _specifications.get(key)) is not None:  # equal ones are the same object
            return known
        if unreduced & reduced:
            raise ValueError("`unreduced` and `reduced` argument to PartitionSpec cannot overlap. Got unreduced: "
                             f"{unreduced}, reduced: {reduced}")
        named = {name for entry in entries for name in (entry if isinstance(entry, tuple) else (entry,)) if isinstance(name, str)}
        for word, axes in (("unreduced", unreduced), ("reduced", reduced)):
            if named & axes:
                raise ValueError(f"partitions cannot overlap with {word} axes passed to PartitionSpec. Got partitions: {entries} "
                                 f"and {word} axes: {set(axes)}")
        made = object.__new__(cls)
        made._entries, made.unreduced, made.reduced = key
        return _specifications.setdefault(key, made)

    def __reduce__(self):
        return _specification, self._key

    @property
    def partitions(self):
        return self._entries

    def update(self, **changes):
        """A copy with other partitions, unreduced or reduced axes."""
        return PartitionSpec(*changes.get("partitions", self._entries), unreduced=changes.get("unreduced", self.unreduced),
                             reduced=changes.get("reduced", self.reduced))

    def __iter__(self):
        return iter(self._entries)

    def __len__(self):
        return len(self._entries)

    def __getitem__(self, index):
        return self._entries[index]

    def __init_subclass__(cls, **kwargs):
        raise TypeError("Subclassing `jax.P` is prohibited.")

    def _add_tuple(self, other, method):
        if not isinstance(other, tuple):
            raise NotImplementedError
        for word in ("unreduced", "reduced"):
            if getattr(self, word):
                raise TypeError(f"other {other} cannot be of instance `tuple` when self {self} has {word} in `{method}` of PartitionSpec.")
        return other

    def __add__(self, other):
        if isinstance(other, PartitionSpec):
            return PartitionSpec(*self, *other, unreduced=self.unreduced | other.unreduced, reduced=self.reduced | other.reduced)
        return PartitionSpec(*self, *self._add_tuple(other, "__add__"))

    def __radd__(self, other):
        return PartitionSpec(*self._add_tuple(other, "__radd__"), *self)

    def __eq__(self, other):
        return isinstance(other, PartitionSpec) and self._key == other._key

    def __hash__(self):
        return hash(self._key)

    @property
    def _key(self):
        return self._entries, self.unreduced, self.reduced

    def __repr__(self):
        texts = [repr(entry) for entry in self._entries]
        for word, axes in (("unreduced", self.unreduced), ("reduced", self.reduced)):
            texts += [f"{word}={{{', '.join(map(repr, sorted(axes)))}}}"] if axes else []
        return f"P({', '.join(texts)}{',' if len(texts) == len(self._entries) == 1 else ''})"

    def index(self, value):
        return self._entries.index(value)

    def count(self, value):
        return self._entries.count(value)


P = PartitionSpec
UNCONSTRAINED = PartitionSpec.UNCONSTRAINED


def _entry(entry):
    if isinstance(entry, (tuple, list)):
        for name in entry:
            if isinstance(name, (tuple, list)):
                raise ValueError(f"A tuple inside PartitionSpec cannot contain a nested tuple. Got partition: {entry} and the nested tuple: {name}")
        return entry[0] if len(entry) == 1 else tuple(entry) if entry else None
    if entry is None or isinstance(entry, (str, Unconstrained)):
        return entry
    raise ValueError(f"PartitionSpec: an entry must be None, a name, a tuple of names or UNCONSTRAINED, got {entry!r}")


def _axis_set(word, axes):
    if not isinstance(axes, (set, frozenset)):
        raise TypeError(f"`{word}` argument of PartitionSpec should be `None` or of type `frozenset` or `set`. Got type {type(axes)}")
    if None in axes:
        raise ValueError(f"{word} cannot contain None. All elements in {word} should refer to the mesh axes.")
    return frozenset(axes)


_open_meshes = threading.local()


def square_grid(count, axes):
    """The sizes of `axes` axes, as equal as the factors of `count` allow, largest first: 8 devices on two axes are 4 x 2."""
    sizes, factor = [1] * axes, 2
    factors = []
    while count > 1:
        while count % factor == 0:
            factors.append(factor)
            count //= factor
        factor += 1
    for factor in reversed(factors):
        sizes[sizes.index(min(sizes))] *= factor
    return tuple(sorted(sizes, reverse=True))


_meshes = weakref.WeakValueDictionary()


class Mesh(NamedAxes, contextlib.ContextDecorator):
    """A grid of devices whose axes have names.

    Unlike in jax, a flat list of devices for several axes becomes the squarest grid; an array of devices keeps its shape.
    """

    def __new__(cls, devices, axis_names, axis_types=None):
        import numpy as np
        self = object.__new__(cls)
        self.axis_names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if None in self.axis_names:
            raise ValueError(f"Mesh axis names cannot be None. Got: {self.axis_names}")
        if not isinstance(devices, np.ndarray):
            listed = np.empty(np.shape(np.array(devices, dtype=object)), dtype=object)
            listed[...] = devices
            flat = listed.ndim == 1 and listed.size > 0 and len(self.axis_names) > 1
            devices = listed.reshape(square_grid(listed.size, len(self.axis_names))) if flat else listed
        self.devices = devices.copy()
        self.devices.flags.writeable = False
        if devices.ndim != len(self.axis_names):
            raise ValueError(f"Mesh requires the ndim of its first argument (`devices`) to equal the length of its second argument "
                             f"(`axis_names`), but got devices.ndim == {devices.ndim} and len(axis_names) == {len(self.axis_names)}.")
        if len(set(self.axis_names)) != len(self.axis_names):
            raise ValueError(f"Mesh requires its axis_names to be distinct, got {self.axis_names}")
        self.axis_types = checked_types(axis_types, self.axis_names, "Mesh")
        self._key = (self.axis_names, self.devices.shape, tuple(self.devices.flat), self.axis_types)
        return _meshes.setdefault((cls, self._key), self)  # equal ones are the same object

    def __reduce__(self):
        return Mesh, (self.devices, self.axis_names, self.axis_types)

    @property
    def _opaque_view(self):
        """The core's view of the mesh as an equation parameter."""
        return _core.mesh_view(core_mesh(self, self))

    @property
    def _flat_devices_tuple(self):
        return self._key[2]

    @property
    def axis_sizes(self):
        return self.devices.shape

    @property
    def size(self):
        return self.devices.size if self.devices.ndim else 0

    @property
    def empty(self):
        return self.devices.ndim == 0 or self.devices.size == 0

    @property
    def device_ids(self):
        import numpy as np
        return np.vectorize(lambda device: device.id, otypes=[int])(self.devices)

    @property
    def local_devices(self):
        return [device for device in self.devices.flat if device.process_index == device.client.process_index()]

    @property
    def local_mesh(self):
        return self if not self.is_multi_process else self._local_mesh(self.devices.flat[0].client.process_index())

    def _local_mesh(self, process_index):
        """The subgrid of a process's devices, which must be a block of the grid."""
        import numpy as np
        own = np.vectorize(lambda device: device.process_index == process_index, otypes=[bool])(self.devices)
        block = tuple(slice(min(places), max(places) + 1) for places in np.nonzero(own))
        if not own[block].all():
            raise ValueError("When passing host local inputs to pjit, devices connected to a single host must form a contiguous subcube of "
                             "the global device mesh")
        return Mesh(self.devices[block], self.axis_names)

    @property
    def abstract_mesh(self):
        return abstract(self)

    @property
    def is_scalar(self):
        return self.devices.ndim == 0

    def update(self, devices=None, axis_names=None, axis_types=None):
        """A copy with other devices, axis names or axis types."""
        return Mesh(self.devices if devices is None else devices, self.axis_names if axis_names is None else axis_names,
                    self.axis_types if axis_types is None else axis_types)

    @property
    def is_multi_process(self):
        return len(self.local_devices) != self.size

    def __enter__(self):
        _stack().append(self)
        _entered().append(self)
        return self

    def __exit__(self, *exception):
        _stack().pop()
        _entered().pop()
        return False

    def __eq__(self, other):
        return isinstance(other, Mesh) and self._key == other._key

    def __hash__(self):
        return hash(self._key)

    def __str__(self):
        if self.empty:
            return "Mesh()"
        sizes = "".join(f"'{name}': {size}, " for name, size in self.shape_tuple)
        return f"Mesh({sizes}axis_types={self.axis_types})"

    def __repr__(self):
        return f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}, axis_types={self.axis_types})"


def _stack():
    if not hasattr(_open_meshes, "stack"):
        _open_meshes.stack = []
    return _open_meshes.stack


def _entered():
    """The stack of `with mesh:`, which only pjit and constraints read, as in jax."""
    if not hasattr(_open_meshes, "entered"):
        _open_meshes.entered = []
    return _open_meshes.entered


def entered_mesh():
    """The innermost mesh of `with mesh:` on this thread; None if there is none."""
    return _entered()[-1] if _entered() else None


def set_mesh_in_use():
    """The mesh of set_mesh; None if there is none."""
    return getattr(_open_meshes, "chosen", None)


def current_mesh():
    """The innermost mesh of `with mesh:` and `with set_mesh(mesh):` on this thread; None if there is none."""
    return _stack()[-1] if _stack() else None


def core_mesh(mesh, grid):
    """The core's form of a mesh, with the devices of the mesh `grid`; None for no specific devices."""
    devices = list(grid.devices.flat) if grid is not None else []
    platform = devices[0]._placement_platform if devices else "cpu"
    return _core.NamedSharding(platform, [device.id for device in devices] or list(range(mesh.size)), list(mesh.axis_names),
                               list(mesh.axis_sizes), [], "", axis_types=[kind.value for kind in mesh.axis_types])


class _MeshContext:
    """A context mesh, in effect from construction until the context ends."""

    def __init__(self, mesh):
        self._mesh, self._before = mesh, (list(_stack()), set_mesh_in_use())
        _stack().append(mesh)
        _open_meshes.chosen = mesh
        self._core_before = _core.swap_context_mesh(None if mesh is None or mesh.empty else core_mesh(mesh, mesh))

    def __enter__(self):
        return self._mesh

    def __exit__(self, *exception):
        _stack()[:], _open_meshes.chosen = self._before
        _core.swap_context_mesh(self._core_before)
        return False


class set_mesh(_MeshContext):
    """Sets the mesh for specifications without one, from now on, or as a context until it ends. None means no mesh."""

    def __init__(self, mesh):
        if mesh is not None and not isinstance(mesh, Mesh):
            raise ValueError(f"Expected mesh of type `jax.sharding.Mesh`. Got {type(mesh)}")
        if _core.is_tracing():
            raise ValueError("`set_mesh` can only be used outside of `jax.jit`.")
        if mesh is not None and mesh.manual_axes:
            raise ValueError(f"mesh {mesh} contains manual axes which is not allowed when using `jax.set_mesh`. Please use "
                             "`jax.shard_map` to "
                             "enter into `Manual` mode instead.")
        super().__init__(mesh)


def run_in_mesh(mesh, function, args, kwargs):
    """Calls a function in the context of a mesh, also while an enclosing function is traced."""
    with _MeshContext(mesh):
        return function(*args, **kwargs)


def get_mesh():
    """The mesh of set_mesh; the empty mesh if there is none."""
    if _core.is_tracing():
        raise ValueError("`get_mesh` can only be used outside of `jax.jit`. Maybe you want `jax.sharding.get_abstract_mesh()`?")
    mesh = set_mesh_in_use()
    import numpy as np
    return Mesh(np.empty((), dtype=object), ()) if mesh is None else mesh


def grid_of(devices, sizes):
    """Arranges devices in an array of these sizes."""
    import numpy as np
    grid = np.empty(len(devices), dtype=object)
    grid[:] = devices
    return grid.reshape(sizes)


def make_mesh(axis_shapes, axis_names, axis_types=None, *, devices=None):
    """A mesh of the first devices; its axes are Explicit unless `axis_types` is passed."""
    import math
    if not all(hasattr(size, "__index__") for size in axis_shapes):
        raise ValueError(f"`axis_shapes` passed to `make_mesh` should be a sequence of ints. Got {axis_shapes}")
    axis_shapes, axis_names = tuple(axis_shapes), (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
    if axis_types is None:
        axis_types = (AxisType.Explicit,) * len(axis_names)
    chosen = list(_all_devices() if devices is None else devices)
    count = math.prod(axis_shapes)
    if len(chosen) < count:
        raise ValueError(f"Number of devices {len(chosen)} must be >= the product of mesh_shape {axis_shapes}")
    return Mesh(grid_of(chosen[:count], axis_shapes), axis_names, axis_types)


_tracebacks.guard(__name__)
