"""Types of jax.ref: mutable arrays, and reads and writes of them as functions."""
from typing import Any

from capibara._core import Array
from capibara._core import Ref as Ref
from capibara._stub_types import Index
from capibara.jax.typing import ArrayLike

def new_ref(init_val: ArrayLike, *, memory_space: None = None, kind: str | None = None) -> Ref:
    """A mutable array with an initial value; `kind` is a name shown in programs."""
def empty_ref(ty: Any, memory_space: None = None) -> Ref:
    """A mutable array of a type, to be written before it is read."""
def freeze(ref: Ref) -> Array:
    """The last value of a mutable array, which must not be used afterwards."""
def free_ref(ref: Ref) -> None:
    """Frees a mutable array, which must not be used afterwards."""
def get(ref: Ref, idx: Index = None) -> Array:
    """The current value, or a part of it."""
def set(ref: Ref, idx: Index, value: ArrayLike) -> None:
    """Writes a value, or a part of it."""
def swap(ref: Ref, idx: Index, value: ArrayLike) -> Array:
    """Writes a value, or a part of it, and returns the old one."""
def addupdate(ref: Ref, idx: Index, x: ArrayLike) -> None:
    """Adds to the value, or to a part of it."""
