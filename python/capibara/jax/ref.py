"""jax.ref: mutable arrays, and reads and writes of them as functions."""
from capibara import _core, _lifting
from capibara._core import Ref  # noqa: F401
from capibara._modules import explain_missing
from capibara._records import Record
from capibara._types import Slice
from capibara.jax._api import ensure_compile_time_eval, eval_shape
from capibara.jax.tree_util import register_pytree_node_class


def new_ref(init_val, *, memory_space=None, kind=None):
    """A mutable array with an initial value; `kind` is a name shown in programs."""
    if memory_space is not None:
        raise NotImplementedError(f"new_ref: refs live in the default memory, got memory_space={memory_space!r}")
    if _lifting.is_hi(init_val) and not _lifting.is_mutable(init_val):
        kind_of_value = _lifting.type_of(init_val)
        return _HiRef(kind_of_value, [_core.new_ref(array, kind) for array in kind_of_value.lower_val(init_val)])
    leaves, tree = _core.tree_flatten(init_val)
    if len(leaves) == 1 and leaves[0] is init_val:
        return _core.new_ref(init_val, kind)
    raise TypeError(f"new_ref: the initial value must be an array, got a tree of structure {tree}; make one ref of each leaf")


def empty_ref(ty, memory_space=None):
    """A mutable array of a type, to be written before it is read."""
    if not isinstance(ty, _core.ShapedArray) and hasattr(ty, "lo_ty"):
        return _HiRef(ty, [empty_ref(one, memory_space) for one in ty.lo_ty()])
    return new_ref(_core.library_function("lax", "empty")(ty.shape, ty.dtype), memory_space=memory_space)


def freeze(ref):
    """The last value of a mutable array, which must not be used afterwards."""
    if isinstance(ref, _HiRef):
        return ref._type.raise_val(*map(_core.freeze_ref, ref._arrays))
    return _core.freeze_ref(ref)


def free_ref(ref):
    """Frees a mutable array, which must not be used afterwards."""
    freeze(ref)


_swap_p = next(primitive for primitive in _core.catalog() if primitive.name == "swap")


def _static(entry):
    """A non-array entry of an index as an object with equality and hash."""
    return (slice, entry.start, entry.stop, entry.step) if isinstance(entry, slice) else entry


@register_pytree_node_class
class _View:
    """A part of a mutable array, read and written through the whole; a pytree of the array and the arrays in its index."""

    def __init__(self, ref, index):
        self._ref, self._index = ref, index

    __iter__ = None  # otherwise functions that accept sequences would iterate forever
    shape = property(lambda self: self._type.shape)
    dtype = property(lambda self: self._ref.dtype)
    ndim = property(lambda self: len(self.shape))
    _type = property(lambda self: eval_shape(lambda ref: ref[self._index], _core.ShapedArray(self._ref.shape, self._ref.dtype)))

    def tree_flatten(self):
        """The array and the arrays of the index; the rest of the index is static."""
        entries = self._index if isinstance(self._index, tuple) else (self._index,)
        arrays = [entry for entry in entries if hasattr(entry, "dtype")]
        fixed = tuple(None if hasattr(entry, "dtype") else (_static(entry),) for entry in entries)
        return (self._ref, *arrays), (isinstance(self._index, tuple), fixed)

    @classmethod
    def tree_unflatten(cls, fixed, children):
        """The inverse of tree_flatten."""
        ref, *arrays = children
        is_tuple, entries = fixed
        arrays, index = iter(arrays), []
        for entry in entries:
            if entry is None:
                index.append(next(arrays))
            else:
                value, = entry
                index.append(slice(*value[1:]) if isinstance(value, tuple) and value and value[0] is slice else value)
        return cls(ref, tuple(index) if is_tuple else index[0])

    def addupdate(self, x, index=()):
        """Adds to the part, or to a part of it."""
        if isinstance(index, tuple) and not index:
            self._ref.addupdate(x, self._index)
        else:
            self[index] = self[index] + x

    def __getitem__(self, index):
        return self._ref[self._index][index]

    def __setitem__(self, index, value):
        whole = index is Ellipsis or index == () if not isinstance(index, _core.Array) else False
        self._ref[self._index] = value if whole else self._ref[self._index].at[index].set(value)

    @property
    def at(self):
        return _Views(self)

    def reshape(self, *shape):
        """The same values in another shape, read and written through the mutable array."""
        return _Reshaped(self, _full_shape(self.shape, shape))


@register_pytree_node_class
class _Reshaped(_View):
    """A mutable array, or a part of one, in another shape."""

    def __init__(self, ref, shape):
        super().__init__(ref, ...)
        self._shape = shape

    shape = property(lambda self: self._shape)
    _type = property(lambda self: _core.ShapedArray(self._shape, self._ref.dtype))

    def tree_flatten(self):
        """The mutable array; the shape is static."""
        return (self._ref,), self._shape

    @classmethod
    def tree_unflatten(cls, shape, children):
        """The inverse of tree_flatten."""
        return cls(*children, shape)

    def __getitem__(self, index):
        return _library("reshape")(self._ref[...], self._shape)[index]

    def __setitem__(self, index, value):
        self._write(index, _core.as_array(value), "set")

    def addupdate(self, x, index=()):
        """Adds to the values, or to a part of them."""
        self._write(index, _core.as_array(x), "add")

    def _write(self, index, value, how):
        old = self[...]
        expected = old[index].shape
        if value.dtype != old.dtype or value.shape not in ((), expected):
            operation = "swap" if how == "set" else "addupdate"
            raise ValueError(f"{operation}: the value must have shape {expected} and dtype {old.dtype}, as the part of the reshaped "
                             f"mutable array, got shape {value.shape} and dtype {value.dtype}")
        self._ref[...] = _library("reshape")(getattr(old.at[index], how)(value), self._ref.shape)


def _full_shape(old, shape):
    """The sizes of reshape's arguments, with the one that is -1."""
    shape = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    return eval_shape(lambda x: _library("reshape")(x, shape), _core.ShapedArray(old, "float32")).shape


def _library(name):
    return _core.library_function("numpy", name)


@register_pytree_node_class
class _HiRef:
    """A mutable value above arrays: a mutable array for each of its arrays."""

    def __init__(self, kind, arrays):
        self._type, self._arrays = kind, tuple(arrays)

    _refs = property(lambda self: self._type.raise_val(*self._arrays), doc="A value above arrays made of the mutable arrays.")
    shape = property(lambda self: self._type.shape)
    ndim = property(lambda self: len(self._type.shape))

    def tree_flatten(self):
        """The mutable arrays; the type is static."""
        return self._arrays, self._type

    @classmethod
    def tree_unflatten(cls, kind, arrays):
        """The inverse of tree_flatten."""
        return cls(kind, arrays)

    def _is_whole(self, index, method):
        """True for an index of everything; the type has a method for others."""
        if index is None or index is Ellipsis or isinstance(index, tuple) and all(one is Ellipsis for one in index):
            return True
        if not hasattr(self._type, method):
            raise TypeError(f"{type(self._type).__name__}: an index other than [...] needs the type's method '{method}', got {index!r}")
        return False

    def __getitem__(self, index):
        if self._is_whole(index, "ref_get_to_lojax"):
            return self._type.raise_val(*[array[...] for array in self._arrays])
        return self._type.ref_get_to_lojax(self, NDIndexer.of(index, self.shape))

    def __setitem__(self, index, value):
        self.swap(value, index)

    def swap(self, value, index=None):
        """Writes a value and returns the old one."""
        if self._is_whole(index, "ref_swap_to_lojax"):
            new = self._type.lower_val(value)
            return self._type.raise_val(*[swap(array, None, one) for array, one in zip(self._arrays, new, strict=True)])
        return self._type.ref_swap_to_lojax(self, value, NDIndexer.of(index, self.shape))

    def get(self, index=None):
        """The value, or a part of it."""
        return self[index]

    set = __setitem__


class NDIndexer(Record):
    """An index of a mutable array: one number, array or Slice for each dimension."""

    __slots__ = __match_args__ = ("indices", "shape")

    def __init__(self, indices, shape):
        self.indices, self.shape = indices, shape

    @classmethod
    def of(cls, index, shape):
        """The index of what stands between brackets."""
        entries = list(index) if isinstance(index, tuple) else [index]
        if Ellipsis in entries:
            place = entries.index(Ellipsis)
            entries[place:place + 1] = [slice(None)] * (len(shape) - len(entries) + 1)
        entries += [slice(None)] * (len(shape) - len(entries))
        if len(entries) > len(shape):
            raise ValueError(f"`indices` must not be longer than `shape`: got {len(entries)} indices for a ref of {len(shape)} dimensions")
        indices = []
        for entry, size in zip(entries, shape):
            if isinstance(entry, slice):
                start, stop, step = entry.indices(size)
                entry = Slice(start, len(range(start, stop, step)), step)
            indices.append(entry)
        return cls(tuple(indices), tuple(shape))


class _Views:
    def __init__(self, ref):
        self._ref = ref

    def __getitem__(self, index):
        return _View(self._ref, index)


Ref.reshape = _View.reshape
Ref.at = property(_Views, doc="Parts of the mutable array, which can be written: ref.at[1:3][...] = x.")


def _of_value(name, doc):
    """An attribute that a mutable array shares with its current value."""
    def read(ref):
        with ensure_compile_time_eval():
            value = ref[...]
        if isinstance(value, _core.Tracer):
            raise AttributeError(f"The '{name}' attribute is not available on traced array with shape {ref.aval}. "
                                 "To query sharding information on tracers, use `jax.typeof(x)`.")
        return getattr(value, name)
    return property(read, doc=doc)


Ref.sharding = _of_value("sharding", "The devices that hold the current value.")
Ref.format = _of_value("format", "The order of the dimensions of the current value in memory, and its sharding.")


def get(ref, idx=None):
    """The current value, or a part of it."""
    return ref[... if idx is None else idx]


def set(ref, idx, value):
    """Writes a value, or a part of it."""
    ref[... if idx is None else idx] = value


def swap(ref, idx, value):
    """Writes a value, or a part of it, and returns the old one."""
    idx = ... if idx is None else idx
    if isinstance(ref, Ref) and (idx is Ellipsis or isinstance(idx, tuple) and not idx):
        value = _core.as_array(value)
        if value.shape == ref.shape and value.dtype == ref.dtype:
            ref._check_use("swap")
            return _swap_p.bind(ref, value)
    old = ref[idx]
    ref[idx] = value
    return old


def addupdate(ref, idx, x):
    """Adds to the value, or to a part of it."""
    ref.addupdate(x, () if idx is None else idx)


Ref.get = lambda self, idx=None: get(self, idx)
Ref.set = lambda self, value, idx=None: set(self, idx, value)
Ref.swap = lambda self, value, idx=None: swap(self, idx, value)
explain_missing(__name__)
