"""jax._src.state.primitives: reads and writes of mutable arrays as functions and as primitives."""
from capibara import _core
from capibara._modules import explain_missing
from capibara.jax import ref as _ref

_catalog = {primitive.name: primitive for primitive in _core.catalog()}
get_p, swap_p, addupdate_p = _catalog["get"], _catalog["swap"], _catalog["addupdate"]


def _checked(operation, ref):
    if not isinstance(ref, (_core.Ref, _ref._View)):
        raise ValueError(f"{operation}: can only be used on a reference, got {ref}")
    return ref


def ref_get(ref, idx=None):
    """The value of a mutable array, or a part of it."""
    return _ref.get(_checked("ref_get", ref), idx)


def ref_set(ref, idx, value):
    """Writes a value, or a part of it."""
    _ref.set(_checked("ref_set", ref), idx, value)


def ref_swap(ref, idx, value):
    """Writes a value, or a part of it, and returns the old one."""
    return _ref.swap(_checked("ref_swap", ref), idx, value)


def ref_addupdate(ref, idx, x):
    """Adds to the value, or to a part of it."""
    _ref.addupdate(_checked("ref_addupdate", ref), idx, x)


explain_missing(__name__)
