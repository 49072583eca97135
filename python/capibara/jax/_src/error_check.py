"""jax._src.error_check: errors that traced functions record, to be raised later.

The first error of a thread is stored in a mutable array as the index of its message; programs with checks write to it.
"""
import dataclasses
import functools
import json
import sys
import threading
import traceback
import types
import warnings

import numpy as np

from capibara import _core, _tracebacks
from capibara._modules import explain_missing
from capibara.jax import core, device_put, export, numpy, ref, sharding, shard_map, tree_util
from capibara.jax._mesh import get_mesh


class JaxValueError(ValueError):
    """An error that a traced function recorded."""


_NONE = np.uint32(np.iinfo(np.uint32).max)  # greater than all indices, so that the minimum over devices is an error
_UNKNOWN = ("An unknown error occurred during execution of an AOT-imported function. This may indicate data corruption during AOT "
            "serialization/deserialization, or a version mismatch between the exporting and importing JAX versions.",
            "Traceback not available for corrupted error codes.")
_lock = threading.RLock()
_messages = []  # (message, traceback as object or text)
_own = threading.local()


def _state():
    if getattr(_own, "ref", None) is None:
        _own.ref = _new_state()
    return _own.ref


def _new_state():
    """The state without errors, on each device of the context mesh."""
    with core.eval_context():
        mesh = get_mesh()
        if mesh is None or mesh.empty:
            return ref.new_ref(numpy.asarray(_NONE))
        placed = sharding.NamedSharding(mesh, sharding.PartitionSpec(*mesh.axis_names))
        return ref.new_ref(device_put(numpy.full(mesh.axis_sizes, _NONE), placed))


class error_checking_context:
    """A context whose errors are stored on the devices of the context mesh, separately from those outside."""

    def __enter__(self):
        self._before = getattr(_own, "ref", None)
        _own.ref = _new_state()
        return self

    def __exit__(self, *exception):
        _own.ref = self._before


def _frames():
    """The user's frames as a traceback, outermost first."""
    found, frame = None, sys._getframe(2)
    while frame is not None:
        if not _tracebacks.is_internal(frame):
            found = types.TracebackType(found, frame, frame.f_lasti, frame.f_lineno)
        frame = frame.f_back
    return found


def set_error_if(pred, /, msg):
    """Records an error if any element of `pred` is true, unless there is one already; raise_if_error raises it."""
    state = _state()
    with _lock:
        number = np.uint32(len(_messages))
        _messages.append((msg, _frames()))
    pred = numpy.asarray(pred)
    kept, given = _core.type_of(state).sharding, _core.type_of(pred).sharding
    if all(axis is None for axis in kept.spec):
        pred = pred.any()
    elif sharding.AxisType.Auto in given.mesh.axis_types:
        warnings.warn("When at least one mesh axis of `pred` is in auto mode, calling `set_error_if` will cause implicit communication "
                      "between devices. To avoid this, consider converting the mesh axis in auto mode to explicit mode.", RuntimeWarning,
                      stacklevel=2)
        pred = pred.any()
    elif kept.mesh != given.mesh:
        raise ValueError(f"The error code state and the predicate must be on the same mesh, but got {kept.mesh} and {given.mesh} "
                         "respectively. Please use `with error_checking_context()` to redefine the error code state based on the mesh.")
    else:  # each device checks its own shard
        pred = shard_map(functools.partial(numpy.any, keepdims=True), mesh=kept.mesh, in_specs=given.spec, out_specs=kept.spec)(pred)
    code = state[...]
    state[...] = numpy.where((code == _NONE) & pred, number, code)


def raise_if_error():
    """Raises the first error recorded on this thread, and clears it."""
    state = getattr(_own, "ref", None)
    if state is None:
        return
    codes = state[...]
    if isinstance(codes, core.Tracer) or core.unsafe_am_i_under_a_jit():
        raise ValueError("raise_if_error() should not be called within a traced context, such as within a jitted function.")
    code = int(np.min(np.asarray(codes)))
    if code == _NONE:
        return
    state[...] = numpy.full_like(codes, _NONE)
    with _lock:
        message, where = _messages[code] if code < len(_messages) else _UNKNOWN
    if isinstance(where, str):  # from a function that was exported elsewhere
        raise JaxValueError(f"{message}\nThe original traceback is shown below:\n{where}")
    raise JaxValueError(message).with_traceback(where)


@tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class _ErrorClass:
    """The error of an exported function, with the meaning of its indices: (message, text of the traceback)."""

    error_code: _core.Array
    error_list: list = dataclasses.field(metadata={"static": True})


export.register_pytree_node_serialization(
    _ErrorClass, serialized_name="jax._src.error_check._ErrorClass", serialize_auxdata=lambda fixed: json.dumps(fixed).encode(),
    deserialize_auxdata=lambda data: json.loads(data.decode()))


def wrap_for_export(f):
    """A function that returns (result, errors) instead of recording them, for export; unwrap_from_import undoes it."""
    def wrapped(*args, **kwargs):
        global _messages
        before = getattr(_own, "ref", None)
        with _lock:
            kept, _messages = _messages, []
            _own.ref = ref.new_ref(numpy.asarray(_NONE))
            try:
                out = f(*args, **kwargs)
                code = _own.ref[...].min()
            finally:
                own, _messages = _messages, kept
                _own.ref = before
        texts = [(message, "".join(traceback.format_tb(where)).rstrip("\n")) for message, where in own]
        return out, _ErrorClass(code, texts)
    return wrapped


def unwrap_from_import(f):
    """A function that records the errors returned by a function from wrap_for_export."""
    state = _state()

    def unwrapped(*args, **kwargs):
        out, errors = f(*args, **kwargs)
        with _lock:
            first = np.uint32(len(_messages))
            _messages.extend(tuple(entry) for entry in errors.error_list)
        code, new = state[...], errors.error_code
        state[...] = numpy.where((code == _NONE) & (new != _NONE), new + first, code)
        return out
    return unwrapped


explain_missing(__name__)
