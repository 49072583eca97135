"""Named axes of meshes, and abstract meshes."""
import collections
import enum
import math
import weakref


class AxisType(enum.Enum):
    """What determines sharding along a mesh axis: the compiler, the types of values, or the function inside shard_map."""
    Auto = 0
    Explicit = 1
    Manual = 2

    def __repr__(self):
        return self.name


class NamedAxes:
    """The common base of concrete and abstract meshes: axes with names and sizes."""

    @property
    def shape(self):
        return collections.OrderedDict(self.shape_tuple)

    @property
    def shape_tuple(self):
        return tuple(zip(self.axis_names, self.axis_sizes))

    def _axes_of(self, kind):
        return tuple(name for name, own in zip(self.axis_names, self.axis_types) if own is kind)

    def _are_all(self, kind):
        return bool(self.axis_names) and all(own is kind for own in self.axis_types)

    auto_axes = property(lambda self: self._axes_of(AxisType.Auto))
    explicit_axes = property(lambda self: self._axes_of(AxisType.Explicit))
    manual_axes = property(lambda self: self._axes_of(AxisType.Manual))
    are_all_axes_auto = property(lambda self: self._are_all(AxisType.Auto))
    are_all_axes_explicit = property(lambda self: self._are_all(AxisType.Explicit))
    are_all_axes_manual = property(lambda self: self._are_all(AxisType.Manual))

    def type_of(self, name):
        """The type of an axis."""
        return self.axis_types[self.axis_names.index(name)]


_axis_types = weakref.WeakValueDictionary()  # {(varying, unreduced, reduced): ManualAxisType}


class ManualAxisType:
    """The manual axes along which the values of a type differ between devices (varying), are partial sums (unreduced), or have
    cotangents that will be summed (reduced)."""

    __slots__ = ("varying", "unreduced", "reduced", "__weakref__")
    __match_args__ = __slots__[:3]

    def __new__(cls, *, varying=frozenset(), unreduced=frozenset(), reduced=frozenset()):
        """Equal ones are one object."""
        for word, axes in (("unreduced", unreduced), ("reduced", reduced)):
            if set(varying) & set(axes):
                raise ValueError(f"varying and {word} cannot have common mesh axes. Got varying={varying} and {word}={axes}")
        made, key = object.__new__(cls), (frozenset(varying), frozenset(unreduced), frozenset(reduced))
        for word, axes in zip(cls.__match_args__, key):
            object.__setattr__(made, word, axes)
        return _axis_types.setdefault(key, made)

    def __setattr__(self, name, value):
        raise AttributeError(f"cannot assign to field {name!r}")

    def __delattr__(self, name):
        raise AttributeError(f"cannot delete field {name!r}")

    def __reduce__(self):
        return _axis_type, (self.varying, self.unreduced, self.reduced)

    @property
    def vur(self):
        return self.varying | self.unreduced | self.reduced

    @property
    def empty(self):
        return not self.vur

    def invarying(self, mesh):
        """The manual axes of a mesh along which all devices have the same value."""
        return frozenset(mesh.manual_axes) - self.vur

    def update(self, **changes):
        """A copy with other axes."""
        return ManualAxisType(**{word: changes.get(word, getattr(self, word)) for word in self.__match_args__})

    def __eq__(self, other):
        return isinstance(other, ManualAxisType) and all(getattr(self, word) == getattr(other, word) for word in self.__match_args__)

    def __hash__(self):
        return hash((self.varying, self.unreduced, self.reduced))

    def __repr__(self):
        return f"ManualAxisType(varying={self.varying}, unreduced={self.unreduced}, reduced={self.reduced})"


def _axis_type(varying, unreduced, reduced):
    return ManualAxisType(varying=varying, unreduced=unreduced, reduced=reduced)


class AbstractDevice:
    """The known properties of an abstract mesh's devices."""

    def __init__(self, device_kind, num_cores=None, platform=None):
        self.device_kind, self.num_cores, self.platform = device_kind, num_cores, platform

    def __eq__(self, other):
        return isinstance(other, AbstractDevice) and vars(self) == vars(other)

    def __hash__(self):
        return hash(tuple(vars(self).values()))

    def __repr__(self):
        return f"device_kind={self.device_kind}, num_cores={self.num_cores}, platform={self.platform}"


def checked_types(given, names, what):
    """Checks the type of each axis; the default is Auto for all."""
    if given is None:
        return (AxisType.Auto,) * len(names)
    types = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    if not all(isinstance(one, AxisType) for one in types):
        raise TypeError(f"axis_types passed to {what} must be of type `jax.sharding.AxisType`. Got {types} of type "
                        f"{tuple(type(one) for one in types)}")
    if len(types) != len(names):
        raise ValueError(f"Number of axis names should match the number of axis_types. Got axis_names={names} and axis_types={types}")
    return types


class AbstractMesh(NamedAxes):
    """Named axes and their sizes, without devices."""

    def __init__(self, axis_sizes, axis_names, axis_types=None, *, abstract_device=None):
        self.axis_sizes, self.abstract_device = tuple(axis_sizes), abstract_device
        self.axis_names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if len(self.axis_sizes) != len(self.axis_names):
            raise ValueError(f"AbstractMesh: there must be as many axis sizes as axis names, got {self.axis_sizes} and {self.axis_names}")
        self.axis_types = checked_types(axis_types, self.axis_names, "AbstractMesh")

    def update(self, axis_sizes=None, axis_names=None, axis_types=None, **changes):
        """A copy with other axis sizes, names or types, or another abstract device."""
        return AbstractMesh(self.axis_sizes if axis_sizes is None else axis_sizes, self.axis_names if axis_names is None else axis_names,
                            self.axis_types if axis_types is None else axis_types,
                            abstract_device=changes.get("abstract_device", self.abstract_device))

    def update_axis_types(self, changes):
        """A copy with the axis types replaced for the axes in a dictionary."""
        types = tuple(changes.get(name, own) for name, own in zip(self.axis_names, self.axis_types))
        return AbstractMesh(self.axis_sizes, self.axis_names, types, abstract_device=self.abstract_device)

    @property
    def size(self):
        return math.prod(self.axis_sizes) if self.axis_sizes else 0

    @property
    def empty(self):
        return not self.axis_names

    @property
    def abstract_mesh(self):
        return self

    def __eq__(self, other):
        return isinstance(other, AbstractMesh) and (self.shape_tuple, self.axis_types) == (other.shape_tuple, other.axis_types)

    def __hash__(self):
        return hash((self.shape_tuple, self.axis_types))

    def __repr__(self):
        sizes = ", ".join(f"'{name}': {size}" for name, size in self.shape_tuple) or "()"
        device = f", {self.abstract_device!r}" if self.abstract_device is not None else ""
        return f"AbstractMesh({sizes}, axis_types={self.axis_types}{device})"


def abstract(mesh):
    """The abstract mesh of a mesh."""
    device = mesh.devices.flat[0] if mesh.size else None
    known = None if device is None else AbstractDevice(device.device_kind, None, device.platform)
    return AbstractMesh(mesh.axis_sizes, mesh.axis_names, mesh.axis_types, abstract_device=known)
