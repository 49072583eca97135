"""jax.experimental.buffer_callback: Python functions that write the results of a call into memory of the program."""
import ctypes
import enum
import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from capibara._errors import JaxRuntimeError
from capibara._modules import explain_missing
from capibara.jax import ffi, tree_util
from capibara._types import ShapeDtypeStruct

__all__ = ["Buffer", "ExecutionContext", "ExecutionStage", "buffer_callback"]

_TARGET = "capibara_buffer_callback"
_INTERNAL = 13  # XLA's code of internal errors
# XLA's codes of element types.
_DTYPES = {1: np.bool_, 2: np.int8, 3: np.int16, 4: np.int32, 5: np.int64, 6: np.uint8, 7: np.uint16, 8: np.uint32, 9: np.uint64,
           10: np.float16, 11: np.float32, 12: np.float64, 15: np.complex64, 16: ml_dtypes.bfloat16, 18: np.complex128,
           19: ml_dtypes.float8_e5m2, 20: ml_dtypes.float8_e4m3fn, 23: ml_dtypes.float8_e4m3b11fnuz, 24: ml_dtypes.float8_e5m2fnuz,
           25: ml_dtypes.float8_e4m3fnuz, 28: ml_dtypes.float8_e4m3, 29: ml_dtypes.float8_e3m4, 33: ml_dtypes.float8_e8m0fnu}


class ExecutionStage(enum.IntEnum):
    """The stage in which a handler is called."""

    INSTANTIATE = 0
    PREPARE = 1
    INITIALIZE = 2
    EXECUTE = 3


class ExecutionContext:
    """What a callback is told of its call; valid until it returns."""

    def __init__(self, stage: int) -> None:
        self._stage = ExecutionStage(stage)

    @property
    def stage(self) -> ExecutionStage:
        """The stage in which it is called: EXECUTE."""
        return self._stage

    @property
    def stream(self) -> int:
        """The stream of a GPU; here there is none."""
        raise JaxRuntimeError("XLA FFI GPU context is not available: this callback runs on the CPU")


class Buffer:
    """Memory of an operand or a result; valid until the callback returns."""

    def __init__(self, address: int, shape: Sequence[int], dtype: object, writeable: bool) -> None:
        self._address, self._shape, self._dtype, self._writeable = address, shape, np.dtype(dtype), writeable

    shape = property(lambda self: self._shape, doc="Its shape.")
    dtype = property(lambda self: self._dtype, doc="The type of its elements.")
    ndim = property(lambda self: len(self._shape), doc="The number of its dimensions.")
    writeable = property(lambda self: self._writeable, doc="True for results.")

    def unsafe_buffer_pointer(self) -> int:
        """The address of its memory."""
        return self._valid()

    def _valid(self):
        if self._address is None:
            raise RuntimeError("buffer_callback: a Buffer is used after its callback returned; copy what is needed, np.array(buffer)")
        return self._address

    def _view(self, writeable):
        size = int(np.prod(self._shape, dtype=np.int64)) * self._dtype.itemsize
        memory = np.frombuffer((ctypes.c_uint8 * size).from_address(self._valid()) if size else b"", np.uint8)
        view = memory.view(self._dtype).reshape(self._shape)
        if view.flags.writeable and not writeable:
            view.flags.writeable = False
        return view

    def __array__(self, dtype=None, copy=None):
        view = self._view(self._writeable)
        if dtype is not None and np.dtype(dtype) != self._dtype:
            if copy is False:
                raise ValueError(f"buffer_callback: a Buffer of {self._dtype} is not one of {np.dtype(dtype)} without a copy")
            return view.astype(dtype)
        return view.copy() if copy else view

    def __dlpack__(self, **options):
        return self._view(True).__dlpack__(**options)  # DLPack cannot say that memory is read-only

    def __dlpack_device__(self):
        return 1, 0

    def __repr__(self):
        return f"Buffer(shape={self._shape}, dtype={self._dtype}, writeable={self._writeable})"


# The head of XLA's call frame, and what it refers to, as their C interface lays them out.
def _structure(name, *fields):
    return type(name, (ctypes.Structure,), {"_fields_": list(fields)})


_head = ("struct_size", ctypes.c_size_t), ("extension", ctypes.c_void_p)
_Memory = _structure("_Memory", *_head, ("dtype", ctypes.c_int32), ("data", ctypes.c_void_p), ("rank", ctypes.c_int64),
                     ("dims", ctypes.POINTER(ctypes.c_int64)))
_List = _structure("_List", *_head, ("size", ctypes.c_int64), ("types", ctypes.c_void_p),
                   ("values", ctypes.POINTER(ctypes.POINTER(_Memory))))
_Scalar = _structure("_Scalar", ("dtype", ctypes.c_int32), ("value", ctypes.POINTER(ctypes.c_int64)))
_Attributes = _structure("_Attributes", *_head, ("size", ctypes.c_int64), ("types", ctypes.c_void_p), ("names", ctypes.c_void_p),
                         ("values", ctypes.POINTER(ctypes.POINTER(_Scalar))))
_ErrorCreate = _structure("_ErrorCreate", *_head, ("message", ctypes.c_char_p), ("code", ctypes.c_int32))
_Api = _structure("_Api", *_head, ("version_size", ctypes.c_size_t), ("version_extension", ctypes.c_void_p), ("major", ctypes.c_int32),
                  ("minor", ctypes.c_int32), ("internal", ctypes.c_void_p),
                  ("error_create", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_ErrorCreate))))
_Frame = _structure("_Frame", *_head, ("api", ctypes.POINTER(_Api)), ("context", ctypes.c_void_p), ("stage", ctypes.c_int32),
                    ("operands", _List), ("results", _List), ("attributes", _Attributes))

_callbacks, _numbers = [], {}  # programs refer to a callback by its number, for as long as the process runs


def _buffers(listed, writeable):
    memories = [listed.values[i].contents for i in range(listed.size)]
    return [Buffer(memory.data or 0, tuple(memory.dims[k] for k in range(memory.rank)), _DTYPES[memory.dtype], writeable)
            for memory in memories]


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Frame))
def _handler(frame):
    frame, buffers = frame.contents, []
    try:
        buffers = _buffers(frame.operands, False), _buffers(frame.results, True)
        _callbacks[frame.attributes.values[0].contents.value[0]](ExecutionContext(frame.stage), *buffers)
        return None
    except BaseException as error:  # the program's caller gets it as JaxRuntimeError
        message = f"buffer_callback: {type(error).__name__}: {error}".encode()
        create = _ErrorCreate(ctypes.sizeof(_ErrorCreate), None, message, _INTERNAL)
        return frame.api.contents.error_create(ctypes.byref(create))
    finally:
        for buffer in [one for part in buffers for one in part]:
            buffer._address = None


@functools.cache
def _register():
    ffi.register_ffi_target(_TARGET, ffi.pycapsule(_handler))


def _number(callback, in_tree, out_tree):
    """The number of a callback on flat buffers."""
    def flat(context, operands, results):
        args, kwargs = in_tree.unflatten(operands)
        if callback(context, out_tree.unflatten(results), *args, **kwargs) is not None:
            raise ValueError("buffer_callback callback must not return any values.")
    try:
        key = callback, in_tree, out_tree
        known = _numbers.get(key)
    except TypeError:  # not hashable
        key = known = None
    if known is None:
        _callbacks.append(flat)
        known = len(_callbacks) - 1
        if key is not None:
            _numbers[key] = known
    return known


def buffer_callback(callback: Callable[..., None], result_shape_dtypes: object, *, has_side_effect: bool = False,
                    vmap_method: str | None = None, input_output_aliases: Mapping[int, int] | None = None,
                    command_buffer_compatible: bool = False) -> Callable[..., Any]:
    """A function of arrays that calls callback(ctx, out, *args, **kwargs), which writes its results into the buffers `out`.

    `args` are buffers in the trees of the arguments, `out` is one in the tree of `result_shape_dtypes`; np.asarray(buffer) is a view.
    """
    types, out_tree = tree_util.tree_flatten(result_shape_dtypes)
    types = [ShapeDtypeStruct(kind.shape, kind.dtype) for kind in types]
    if command_buffer_compatible not in (True, False):
        raise TypeError(f"buffer_callback: command_buffer_compatible must be a bool, got {command_buffer_compatible!r}")

    def call(*args, **kwargs):
        leaves, in_tree = tree_util.tree_flatten((args, kwargs))
        _register()
        aliases = {operator.index(i): operator.index(o) for i, o in (input_output_aliases or {}).items()}
        function = ffi.ffi_call(_TARGET, types, has_side_effect=has_side_effect, vmap_method=vmap_method, input_output_aliases=aliases)
        number = _number(callback, in_tree, out_tree)
        return out_tree.unflatten(function(*leaves, index=np.int64(number)))

    return call


explain_missing(__name__)
