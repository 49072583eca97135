"""The methods of arrays: functions of jax.numpy with the array as first argument."""
import collections

from capibara import _core, _tracebacks
from capibara.jax._api import device_put
from capibara.jax._axes import ManualAxisType
from capibara.jax._devices import Device, device_of
from capibara.jax._sharding import format_of, sharding_of, shards_of

_METHODS = (
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "choose", "clip", "conj", "conjugate",
    "cumprod", "cumsum", "diagonal", "dot", "max", "mean", "min", "nonzero", "prod", "ptp", "ravel", "repeat", "round",
    "searchsorted", "sort", "squeeze", "std", "sum", "swapaxes", "take", "trace", "var", "copy",
)


def complete():
    """Gives the class Array its methods."""
    array = _core.Array
    for name in _METHODS:
        setattr(array, name, _numpy(name))
    for name, value in vars(_Methods).items():
        if not name.startswith("__") or name in ("__round__", "__reversed__", "__contains__", "__array_namespace__", "__rmatmul__"):
            setattr(array, name, _tracebacks.boundary(value) if callable(value) else value)
    array.__cuda_array_interface__ = property(_refuse_cuda_interface)
    array._base_array = property(_key_words)
    array._impl = property(_key_implementation)
    array.__copy__ = lambda self: self.copy()  # a deep copy, which may be donated or deleted
    array.__deepcopy__ = lambda self, memo: self.copy()
    array._value = property(_numpy_value)
    array._npy_value = None  # NumPy reads the arrays' memory: no cached copy exists
    array._arrays = property(lambda self: None if self.is_deleted() else [shard.data for shard in self.addressable_shards])
    array._committed = property(lambda self: self.committed)
    array._check_if_deleted = _check_if_deleted
    array._fully_replicated_shard = lambda self: self.addressable_data(0)
    array._consumed = False  # for keys, while key reuse is checked
    _core.ShapedArray.mat = _core.ShapedArray.manual_axis_type = property(_manual_axis_type)
    _core.Tracer.mat = property(lambda self: self.aval.mat)
    _core.Tracer._trace = property(_core.tracer_trace)
    _core.Tracer.primal = property(lambda self: _jvp_part(self, "primal", 0))
    _core.Tracer.tangent = property(lambda self: _jvp_part(self, "tangent", 1))
    _core.Tracer.__repr__ = _core.Tracer.__str__ = _tracer_text
    _core.Tracer.__reduce__ = lambda self: self.tobytes()  # raises: a traced value has no bytes to pickle


def _numpy_value(self):
    import numpy as np
    if not self.is_fully_addressable:
        raise RuntimeError("Fetching value for `jax.Array` that spans non-addressable (non process local) devices is not possible. You can "
                           "use `jax.experimental.multihost_utils.process_allgather` to print the global array or use "
                           "`.addressable_shards` "
                           "method of jax.Array to inspect the addressable (process local) shards.")
    value = np.asarray(self)
    value.flags.writeable = False
    return value


def _check_if_deleted(self):
    if self.is_deleted():
        raise RuntimeError(f"Array has been deleted with shape={_core.type_of(self).str_short()}.")


def _jvp_part(tracer, name, position):
    pair = _core.jvp_pair(tracer)
    if pair is None:
        raise AttributeError(f"a value traced by {tracer._trace.kind} has no attribute {name!r}: those of forward-mode differentiation do",
                             name=name, obj=tracer)
    return pair[position]


def _tracer_text(self):
    """What a traced value is known to be: its type, and for differentiation and batching the values that it stands for."""
    pair = _core.jvp_pair(self)
    if pair is not None:
        primal, tangent = pair
        if isinstance(tangent, _core.Tracer) and tangent._trace.kind == "linearize":
            return f"GradTracer(primal={primal}, typeof(tangent)={_core.type_of(tangent).str_short(short_dtypes=True)})"
        return f"JVPTracer(primal={primal}, tangent={tangent})"
    batch = _core.batch_of(self)
    if batch is not None:
        return f"VmapTracer(aval={_core.type_of(self)}, batched={_core.type_of(batch)})"
    return f"{'ShardMapTracer' if self._trace.kind == 'shard_map' else 'JitTracer'}({_core.type_of(self)})"


def _manual_axis_type(self):
    varying, unreduced, reduced = _core.manual_axes(self)
    return ManualAxisType(varying=varying, unreduced=unreduced, reduced=reduced)


def _refuse_cuda_interface(self):
    raise AttributeError("__cuda_array_interface__ is only defined for NVidia GPU buffers.")


def _key_words(self):
    if not str(self.dtype).startswith("key<"):
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '_base_array': only keys have one")
    return _core.library_function("random", "key_data")(self)


_KeyImplementation = collections.namedtuple("_KeyImplementation", "name key_shape")


def _key_implementation(self):
    words = _key_words(self)
    return _KeyImplementation(_core.library_function("random", "key_impl")(self), words.shape[self.ndim:])


class _Methods:
    """Methods that are not functions of jax.numpy with the same signature."""

    def reshape(self, *args, order="C", copy=None, out_sharding=None):
        shape = args[0] if len(args) == 1 and not hasattr(args[0], "__index__") and not isinstance(args[0], (str, float)) else args
        return _numpy("reshape")(self, shape, order=order, copy=copy, out_sharding=out_sharding)

    def transpose(self, *args):
        axes = None if not args or args[0] is None else (args[0] if len(args) == 1 and not hasattr(args[0], "__index__") else args)
        return _numpy("transpose")(self, axes)

    def flatten(self, order="C", *, out_sharding=None):
        return _numpy("ravel")(self, order=order, out_sharding=out_sharding)

    def astype(self, dtype, copy=False, device=None):
        return _numpy("astype")(self, dtype, copy=copy, device=device)

    def view(self, dtype=None, type=None):
        if type is not None:
            raise NotImplementedError("`type` argument of array.view() is not supported.")
        if dtype is None:
            return self
        import numpy as np
        from capibara.jax import lax
        dtype = _core.canonical_dtype(dtype)
        if dtype == self.dtype:
            return self
        if dtype == np.dtype(bool):
            return self.view("uint8").astype(bool)
        if self.dtype == np.dtype(bool):
            return self.astype("uint8").view(dtype)
        if self.dtype.kind == "c" and dtype.kind != "c":
            # The real and imaginary parts are adjacent.
            parts = _numpy("stack")([self.real, self.imag], axis=-1)
            return parts.reshape(self.shape[:-1] + (2 * self.shape[-1],) if self.ndim else (2,)).view(dtype)
        from capibara.jax.dtypes import itemsize_bits
        own, new = itemsize_bits(self.dtype), itemsize_bits(dtype)
        if dtype.kind == "c" and self.dtype.kind != "c":
            part = np.dtype("float32" if new == 64 else "float64")
            parts = self.view(part)
            if parts.ndim == 0 or parts.shape[-1] % 2:
                raise ValueError("When changing to a larger dtype, its size must be a divisor of the total size in bytes of "
                                 "the last axis of the array.")
            parts = parts.reshape(parts.shape[:-1] + (parts.shape[-1] // 2, 2))
            return lax.complex(parts[..., 0], parts[..., 1])
        if own == new:
            return lax.bitcast_convert_type(self, dtype)
        if own > new:
            out = lax.bitcast_convert_type(self, dtype)
            return out.reshape(self.shape[:-1] + (self.shape[-1] * (own // new),))
        if self.ndim == 0 or (self.shape[-1] * own) % new:
            raise ValueError("When changing to a larger dtype, its size must be a divisor of the total size in bytes of "
                             "the last axis of the array.")
        grouped = self.reshape(self.shape[:-1] + (self.shape[-1] * own // new, new // own))
        return lax.bitcast_convert_type(grouped, dtype)

    def byteswap(self):
        from capibara.jax import lax
        size = self.dtype.itemsize
        if self.dtype.kind == "c":
            return lax.complex(self.real.byteswap(), self.imag.byteswap())
        if size == 1:
            return self
        return lax.bitcast_convert_type(lax.bitcast_convert_type(self, "uint8")[..., ::-1], self.dtype)

    def compress(self, condition, axis=None, *, out=None, size=None, fill_value=0):
        return _numpy("compress")(condition, self, axis, size=size, fill_value=fill_value, out=out)

    def addressable_data(self, index):
        return self.addressable_shards[index].data

    @property
    def addressable_shards(self):
        return shards_of(self)

    global_shards = addressable_shards

    @property
    def sharding(self):
        return sharding_of(self)

    @property
    def format(self):
        return format_of(self)

    def to_device(self, device, *, stream=None):
        if stream is not None:
            raise NotImplementedError(f"to_device: stream is not supported, got {stream!r}")
        return device_put(self, device)

    def devices(self):
        return self.sharding.device_set

    @property
    def device(self):
        if isinstance(self, _core.Tracer):
            return Device("cpu", 0)
        placement = _core.array_placement(self)
        return self.sharding if placement is not None and placement.axes[0] else device_of(self)

    @property
    def is_fully_replicated(self):
        return self.sharding.is_fully_replicated

    @property
    def is_fully_addressable(self):
        return self.sharding.is_fully_addressable

    def platform(self):
        return next(iter(self.devices())).platform

    @property
    def T(self):
        return _numpy("transpose")(self)

    @property
    def mT(self):
        return _numpy("matrix_transpose")(self)

    @property
    def real(self):
        return _numpy("real")(self)

    @property
    def imag(self):
        return _numpy("imag")(self)

    def __round__(self, ndigits=None):
        rounded = _numpy("round")(self, ndigits or 0)
        return rounded.astype(int) if ndigits is None else rounded

    def __contains__(self, value):
        if self.ndim != 1:
            raise ValueError(f"Array.__contains__: search array must be one-dimensional, got shape {self.shape}")
        if value is None or isinstance(value, str):
            raise TypeError(f"Array.__contains__: unsupported operand type {type(value)}")
        if _numpy("ndim")(value) != 0:
            raise ValueError("Array.__contains__: query value must be a scalar")
        return bool(_numpy("any")(self == value))

    def __reversed__(self):
        return iter(self[::-1])

    def __array_namespace__(self, *, api_version=None):
        import capibara.jax.numpy as jnp
        if api_version is not None and api_version not in ("2021.12", "2022.12", "2023.12", "2024.12", jnp.__array_api_version__):
            raise ValueError(f"array_api_version={api_version!r} is not supported")
        return jnp


def _numpy(name):
    return _core.library_function("numpy", name)
