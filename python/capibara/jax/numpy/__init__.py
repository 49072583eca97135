"""jax.numpy: NumPy's functions on arrays that can be traced."""
import ml_dtypes as _ml_dtypes
import numpy as _np

from capibara import _core, _examples
from capibara._array_class import Array as _Array
from capibara._errors import ConcretizationTypeError as _ConcretizationTypeError
from capibara._modules import fill as _fill
from capibara.jax import dtypes as _dtypes
from capibara.jax._devices import devices as _devices

ndarray = _Array
dtype = _np.dtype
e, pi, inf, nan, euler_gamma, newaxis = _np.e, _np.pi, _np.inf, _np.nan, _np.euler_gamma, None
generic, number, inexact, floating, complexfloating = _np.generic, _np.number, _np.inexact, _np.floating, _np.complexfloating
integer, signedinteger, unsignedinteger = _np.integer, _np.signedinteger, _np.unsignedinteger
flexible, character, object_ = _np.flexible, _np.character, _np.object_
ComplexWarning = _np.exceptions.ComplexWarning if hasattr(_np, "exceptions") else _np.ComplexWarning
s_, index_exp = _np.s_, _np.index_exp
get_printoptions, set_printoptions, printoptions = _np.get_printoptions, _np.set_printoptions, _np.printoptions
issubdtype, promote_types, finfo = _dtypes.issubdtype, _dtypes.promote_types, _dtypes.finfo
iterable = _np.iterable
save, savez = _np.save, _np.savez
__array_api_version__ = "2024.12"


class _ScalarType(type):
    """The metaclass of jax.numpy's scalar types, which are callable as constructors of arrays."""

    def __hash__(self):
        return hash(self.dtype.type)

    def __eq__(self, other):
        return self is other or self.dtype.type == other or (hasattr(other, "dtype") and isinstance(other, _ScalarType) and self.dtype == other.dtype)

    def __ne__(self, other):
        return not self == other

    def __call__(self, x=0):
        return asarray(x, dtype=self.dtype)

    def __instancecheck__(self, instance):
        return isinstance(instance, self.dtype.type)

    def __repr__(self):
        return f"<class 'jax.numpy.{self.__name__}'>"


def _scalar(name, shown=None):
    scalar = _ScalarType(shown or name, (object,), {"dtype": _core.dtype_object(name), "__module__": "jax.numpy"})
    return scalar


_NAMES = ("int4", "int8", "int16", "int32", "int64", "uint4", "uint8", "uint16", "uint32", "uint64", "float16",
          "float32", "float64", "bfloat16", "complex64", "complex128", "int1", "int2", "uint1", "uint2", "float4_e2m1fn",
          "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
          "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
for _name in _NAMES:
    if hasattr(_ml_dtypes, _name) or hasattr(_np, _name):
        globals()[_name] = _scalar(_name)
bool_ = bool = _scalar("bool", "bool")
single, double, csingle, cdouble = float32, float64, complex64, complex128
int_, uint, float_, complex_ = int64, uint64, float64, complex128


class iinfo(_dtypes.iinfo):
    """The limits of an integer dtype."""


def arange(start, stop=None, step=None, dtype=None, *, device=None, out_sharding=None):
    """Evenly spaced numbers from start (by default 0) up to stop, exclusive."""
    bounds = [bound for bound in (start, stop, step) if bound is not None]
    if [bound for bound in bounds if isinstance(bound, (_np.generic, _np.ndarray))]:
        # 64-bit NumPy scalars determine the length in their own precision, whatever the arrays' width.
        dtype = result_type(*bounds) if dtype is None else dtype
        start, stop, step = _plain_number(start), _plain_number(stop), _plain_number(step)
    return _core.library_function("numpy", "arange")(start, stop, step, dtype, device=device, out_sharding=out_sharding)


def _plain_number(x):
    is_wide = isinstance(x, (_np.generic, _np.ndarray)) and x.ndim == 0 and x.dtype in (_np.dtype("float64"), _np.dtype("int64"))
    return x.item() if is_wide else x


def iscomplexobj(x):
    """True if a value, or a scalar type such as complex64, has a complex dtype."""
    if isinstance(x, type) and isinstance(getattr(x, "dtype", None), _np.dtype):
        return _dtypes.issubdtype(x.dtype, _np.complexfloating)
    if isinstance(x, (_np.generic, _np.ndarray)):  # decided by its dtype
        return _np.iscomplexobj(x)
    return _core.library_function("numpy", "iscomplexobj")(x)


def result_type(*args):
    """The result dtype of an operation on these values, dtypes or types."""
    return _dtypes.result_type(*args)


def can_cast(from_, to, casting="safe"):
    """True if a dtype can be cast to another by NumPy's rule."""
    return _np.can_cast(_core.dtype_of(from_) if not isinstance(from_, _core.Array) else from_.dtype, _core.dtype_of(to), casting)


def isdtype(dtype, kind):
    """True if a dtype is of a kind of the array API."""
    dtype = _core.dtype_of(dtype)
    kinds = {"bool": lambda d: d == _np.dtype("bool"), "signed integer": lambda d: issubdtype(d, signedinteger),
             "unsigned integer": lambda d: issubdtype(d, unsignedinteger), "integral": lambda d: issubdtype(d, integer),
             "real floating": lambda d: issubdtype(d, floating), "complex floating": lambda d: issubdtype(d, complexfloating),
             "numeric": lambda d: issubdtype(d, number)}
    for one in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(one, str):
            if one not in kinds:
                raise ValueError(f"Unrecognized kind={one!r} expected one of {sorted(kinds)}, or a compatible input for jnp.dtype()")
            if kinds[one](dtype):
                return True
        elif dtype == _core.dtype_of(one):
            return True
    return False


def isscalar(element):
    """True if a value is a scalar: a number, or an array of rank 0."""
    if isinstance(element, (_np.ndarray, _core.Array)):
        return element.ndim == 0
    return _np.isscalar(element) or (hasattr(element, "__jax_array__") and asarray(element).ndim == 0)


def load(file, *args, **kwargs):
    """An array from a .npy file, or several from a .npz one."""
    result = _np.load(file, *args, **kwargs)
    if not isinstance(result, _np.ndarray):
        return result
    # NumPy's format has no name for bfloat16: files store it as a void type of two bytes.
    return asarray(result.view("bfloat16") if result.dtype == _np.dtype("V2") else result)


def from_dlpack(x, /, *, device=None, copy=None):
    """Imports an array of another library, sharing its memory if possible."""
    from capibara.jax.dlpack import from_dlpack as exchange
    return exchange(x, device, copy)


class _Named(_np.ndarray):
    """An array that NumPy prints under our class's name."""


_Named.__name__ = _Named.__qualname__ = "ArrayImpl"


def array_repr(arr, max_line_width=None, precision=None, suppress_small=None):
    """An array as text, in the form of NumPy's repr."""
    return _np.array_repr(_np.asarray(arr).view(_Named), max_line_width, precision, suppress_small)


def array_str(a, max_line_width=None, precision=None, suppress_small=None):
    """An array as text, in the form of NumPy's str."""
    return _np.array_str(_np.asarray(a), max_line_width, precision, suppress_small)


class _Grid:
    """mgrid and ogrid: grids written as slices."""

    def __init__(self, name, sparse):
        self._name, self._sparse = name, sparse

    def __getitem__(self, key):
        single = not isinstance(key, tuple)
        if key == ():
            return [] if self._sparse else asarray([], dtype=int)
        axes = [_grid_axis(part, self._name) for part in ((key,) if single else key)]
        with _core.ConfigScope({"numpy_dtype_promotion": "standard"}):  # the slices may be promoted, whatever the setting
            dtype = result_type(*axes)
        axes = [axis.astype(dtype) for axis in axes]
        if single:
            return axes[0]
        grids = meshgrid(*axes, indexing="ij", sparse=self._sparse)
        return list(grids) if self._sparse else stack(grids, 0)


def _grid_axis(part, name):
    for which in ("start", "stop", "step"):
        if isinstance(getattr(part, which), _core.Tracer):
            raise _ConcretizationTypeError("Abstract tracer value encountered where concrete value is expected: the result's size depends on "
                                          f"the slice {which} of jnp.{name}, got {getattr(part, which)}")
    start, stop, step = part.start or 0, part.stop, 1 if part.step is None else part.step
    if isinstance(step, complex):
        return linspace(start, stop, int(abs(step)))
    return arange(start, stop, step)


class _Join:
    """r_ and c_: arrays concatenated by indexing syntax."""

    def __init__(self, name, axis, ndmin, trans1d):
        self._name, self._defaults = name, (axis, ndmin, trans1d)

    def __getitem__(self, key):
        key = list(key) if isinstance(key, tuple) else [key]
        axis, ndmin, trans1d = self._defaults
        if isinstance(key[0], str):
            directive = key.pop(0)
            if directive in ("r", "c"):  # as a matrix: one row, or one column
                joined = self[tuple(key)]
                return joined if joined.ndim != 1 else joined[None] if directive == "r" else joined[:, None]
            try:
                numbers = [int(n) for n in directive.split(",")]
            except ValueError:
                raise ValueError(f"could not understand directive {directive!r}") from None
            axis, ndmin, trans1d = (numbers + [ndmin, trans1d][len(numbers) - 1:])[:3]
        parts = []
        for part in key:
            value = _grid_axis(part, self._name) if isinstance(part, slice) else array(part)
            missing = ndmin - value.ndim
            if missing > 0:
                value = value.reshape((1,) * missing + value.shape)
                if trans1d != -1:
                    order = list(range(missing, ndmin))
                    start = trans1d % (missing + 1)
                    order = list(range(start)) + order + list(range(start, missing))
                    value = value.transpose(order)
            parts.append(value)
        return concatenate(parts, axis)


class _NamespaceInfo:
    """The array API's information about the namespace."""

    def capabilities(self):
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self):
        return None

    def devices(self):
        return [*_devices(), None]

    def default_dtypes(self, *, device=None):
        names = {"real floating": "float64", "complex floating": "complex128", "integral": "int64", "indexing": "int64"}
        return {kind: _core.canonical_dtype(name) for kind, name in names.items()}

    def dtypes(self, *, device=None, kind=None):
        names = ["bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float32", "complex64"]
        if _core.config_values()["enable_x64"]:
            names += ["int64", "uint64", "float64", "complex128"]
        return {name: _np.dtype(name) for name in names if kind is None or isdtype(_np.dtype(name), kind)}


def __array_namespace_info__():
    """The array API's information about this namespace."""
    return _NamespaceInfo()


mgrid, ogrid = _Grid("mgrid", False), _Grid("ogrid", True)
r_, c_ = _Join("r_", 0, 1, -1), _Join("c_", -1, 2, 0)

_fill(__name__, "numpy")

from capibara.jax.numpy import fft, linalg  # noqa: E402,F401
from capibara.jax.numpy._functions import *  # noqa: E402,F401,F403
from capibara.jax.numpy._ufuncs import *  # noqa: E402,F401,F403
from capibara.jax.numpy._ufuncs import from_library as _from_library  # noqa: E402

for _name, _function in _core.library_module("numpy").items():
    if _function.nin:
        globals()[_name] = _from_library(_name, _function)

_examples.complete(__name__)
