"""Shapes and dtypes without values, and the stages' information about arguments."""
import math
from collections import namedtuple

from capibara import _core


# Callbacks set by the sharding module, which imports this one: `checked(sharding, shape)` returns (sharding, layout) and raises
# if they do not fit; `meant` resolves a specification to a sharding in the current mesh; two classes.
PlacementRules = namedtuple("PlacementRules", "checked, meant, Format, Sharding")


def set_placement_rules(rules):
    global _placement
    _placement = rules


class ShapeDtypeStruct:
    """A shape and a dtype without a value."""

    __slots__ = ("shape", "dtype", "weak_type", "_sharding", "_layout", "manual_axis_type", "is_ref")

    def __init__(self, shape, dtype, *, sharding=None, weak_type=False, manual_axis_type=None, is_ref=False, **_):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        layout = None
        if sharding is not None:
            sharding, layout = _placement.checked(sharding, tuple(shape))
        values = tuple(shape), _core.dtype_of(dtype), weak_type, sharding, layout, manual_axis_type, is_ref
        for name, value in zip(ShapeDtypeStruct.__slots__, values):
            object.__setattr__(self, name, value)

    def __setattr__(self, name, value):
        if getattr(self, name) != value:
            raise RuntimeError(f"Cannot reassign attributes ({name}) of immutable ShapeDtypeStruct objects")

    def __reduce__(self):
        return _sds_from_pickle, (self._fields(), self._layout)

    def _fields(self):
        return {name.lstrip("_"): getattr(self, name) for name in ShapeDtypeStruct.__slots__ if name != "_layout"}

    @property
    def sharding(self):
        """The sharding of the array; a specification refers to the mesh of set_mesh."""
        return None if self._sharding is None else _placement.meant(self._sharding)

    @property
    def format(self):
        """The order of the dimensions in memory, and the sharding."""
        return _placement.Format(self._layout, self.sharding)

    @classmethod
    def like(cls, x):
        """The type of an array, number or abstract value."""
        if hasattr(x, "shape") and hasattr(x, "dtype"):
            placed = getattr(x, "sharding", None) if getattr(x, "_committed", True) else None
            if isinstance(x, _core.Tracer):
                typed = _core.type_of(x).sharding
                placed = typed if typed.mesh.explicit_axes else None
            return cls(x.shape, _core.canonical_dtype(x.dtype), sharding=placed, weak_type=getattr(x, "weak_type", False))
        value = _core.as_array(x)
        return cls(value.shape, value.dtype, weak_type=value.weak_type)

    def _as_zeros(self):
        """An array of this type, for functions that only read types."""
        return zeros_of(self)

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        return math.prod(self.shape)

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def update(self, **changes):
        """A copy with the given fields replaced."""
        if self._layout is not None and isinstance(changes.get("sharding"), _placement.Sharding):
            raise ValueError(f"You are updating ShapeDtypeStruct with a {type(changes['sharding'])} when the original ShapeDtypeStruct had "
                             f"a concrete layout {self.format}. This might lead to bugs. If you want to do this, create a new "
                             "ShapeDtypeStruct via the constructor.")
        fields = self._fields()
        if self._layout is not None:
            fields["sharding"] = self.format
        return ShapeDtypeStruct(**{**fields, **changes})

    def __repr__(self):
        further = (("sharding", self._sharding if self._sharding is None else self.sharding), ("format", self._layout),
                   ("weak_type", self.weak_type or None), ("manual_axis_type", self.manual_axis_type), ("is_ref", self.is_ref or None))
        listed = "".join(f", {name}={value}" for name, value in further if value is not None)
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{listed})"

    def __eq__(self, other):
        return isinstance(other, ShapeDtypeStruct) and self._key == other._key

    def __hash__(self):
        return hash(self._key)

    @property
    def _key(self):
        return tuple(getattr(self, name) for name in ShapeDtypeStruct.__slots__)


def _sds_from_pickle(fields, layout):
    sharding = fields["sharding"] if layout is None else _placement.Format(layout, fields["sharding"])
    return ShapeDtypeStruct(**{**fields, "sharding": sharding})


class ArgInfo(ShapeDtypeStruct):
    """A stage's information about an argument."""

    __slots__ = ("donated",)

    def __init__(self, shape, dtype=None, donated=False):
        if dtype is None:  # ArgInfo(type, donated=...), as jax constructs it
            shape, dtype = shape.shape, shape.dtype
        super().__init__(shape, dtype)
        object.__setattr__(self, "donated", donated)

    @property
    def _aval(self):
        return _core.ShapedArray(self.shape, self.dtype)

    def __eq__(self, other):
        return isinstance(other, ArgInfo) and (self._key, self.donated) == (other._key, other.donated)

    def __hash__(self):
        return hash((self._key, self.donated))

    def __repr__(self):
        sizes = ",".join(map(str, self.shape))
        return f"ArgInfo(_aval=ShapedArray({self.dtype.name}[{sizes}]), donated={self.donated})"


def zeros_of(struct):
    return _core.library_function("numpy", "zeros")(struct.shape, struct.dtype)
