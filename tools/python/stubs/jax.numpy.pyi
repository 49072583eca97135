import builtins
from typing import Any

import numpy as np

from capibara._core import Array
from capibara.jax._devices import Device
from capibara.jax._sharding import Sharding
from capibara.jax.dtypes import iinfo as _iinfo
from capibara.jax.numpy._ufuncs import ufunc as ufunc
from capibara.jax.typing import ArrayLike, DTypeLike

class _ScalarType(type):
    """The class of the scalar types: names of dtypes that make arrays when they are called."""

    dtype: np.dtype[Any]
    def __call__(self, x: Any = 0) -> Array: ...

class _UnaryUfunc(ufunc):
    def __call__(self, x: ArrayLike, /, *, out: None = None, where: None = None) -> Array: ...  # type: ignore[override]

class _BinaryUfunc(ufunc):
    def __call__(self, x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array: ...  # type: ignore[override]

class _Grid:
    def __getitem__(self, key: slice | tuple[slice, ...]) -> Any: ...

class _Join:
    def __getitem__(self, key: Any) -> Array: ...

class iinfo(_iinfo): ...

ndarray = Array
mgrid: _Grid
ogrid: _Grid
r_: _Join
c_: _Join

def result_type(*args: Any) -> np.dtype[Any]: ...
def can_cast(from_: DTypeLike | ArrayLike, to: DTypeLike, casting: str = "safe") -> builtins.bool: ...
def isdtype(dtype: DTypeLike, kind: DTypeLike | str | tuple[DTypeLike | str, ...]) -> builtins.bool: ...
def load(file: Any, *args: Any, **kwargs: Any) -> Array: ...
def from_dlpack(x: Any, /, *, device: Device | Sharding | None = None, copy: builtins.bool | None = None) -> Array: ...
def array_repr(
    arr: ArrayLike, max_line_width: int | None = None, precision: int | None = None, suppress_small: builtins.bool | None = None
) -> str: ...
def array_str(
    a: ArrayLike, max_line_width: int | None = None, precision: int | None = None, suppress_small: builtins.bool | None = None
) -> str: ...
