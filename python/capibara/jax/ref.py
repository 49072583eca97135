"""jax.ref: mutable arrays, and reads and writes of them as functions."""
from capibara import _core
from capibara._core import Ref  # noqa: F401
from capibara._modules import explain_missing


def new_ref(init_val, *, memory_space=None, kind=None):
    """A mutable array with an initial value; `kind` is a name that programs show."""
    if memory_space is not None:
        raise NotImplementedError(f"new_ref: refs live in the default memory, got memory_space={memory_space!r}")
    leaves, tree = _core.tree_flatten(init_val)
    if len(leaves) == 1 and leaves[0] is init_val:
        return _core.new_ref(init_val, kind)
    raise TypeError(f"new_ref: the initial value must be an array, got a tree of structure {tree}; make one ref of each leaf")


def empty_ref(ty, memory_space=None):
    """A mutable array of a type, to be written before it is read."""
    return new_ref(_core.library_function("lax", "empty")(ty.shape, ty.dtype), memory_space=memory_space)


def freeze(ref):
    """The last value of a mutable array, which must not be used afterwards."""
    return _core.freeze_ref(ref)


def free_ref(ref):
    """Gives a mutable array up, which must not be used afterwards."""
    freeze(ref)


class _View:
    """A part of a mutable array, which is read and written through the whole."""

    def __init__(self, ref, index):
        self._ref, self._index = ref, index

    def __getitem__(self, index):
        return self._ref[self._index][index]

    def __setitem__(self, index, value):
        whole = index is Ellipsis or index == () if not isinstance(index, _core.Array) else False
        self._ref[self._index] = value if whole else self._ref[self._index].at[index].set(value)

    @property
    def at(self):
        return _Views(self)


class _Views:
    def __init__(self, ref):
        self._ref = ref

    def __getitem__(self, index):
        return _View(self._ref, index)


Ref.at = property(_Views, doc="Parts of the mutable array, which can be written: ref.at[1:3][...] = x.")


def get(ref, idx=None):
    """The present value, or a part of it."""
    return ref[... if idx is None else idx]


def set(ref, idx, value):
    """Writes a value, or a part of it."""
    ref[... if idx is None else idx] = value


def swap(ref, idx, value):
    """Writes a value, or a part of it, and returns the old one."""
    idx = ... if idx is None else idx
    old = ref[idx]
    ref[idx] = value
    return old


def addupdate(ref, idx, x):
    """Adds to the value, or to a part of it."""
    ref.addupdate(x, () if idx is None else idx)


explain_missing(__name__)
