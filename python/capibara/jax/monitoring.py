"""jax.monitoring: named events and durations for registered listeners; also emitted by traces, compilations and the cache."""
from capibara import _core
from capibara._modules import explain_missing

_listeners = {"event": [], "duration": [], "time span": [], "scalar": []}


def _hear(event, function, begin, end):
    """Receives the core's events: a trace or a compilation of a function, or an event of the disk cache."""
    if function is None:
        record_event(event)
    else:
        record_scalar(event, begin, fun_name=function)
        record_event_duration_secs(event, end - begin, fun_name=function)
        record_event_time_span(event, begin, end, fun_name=function)


def _add(kind, callback):
    _listeners[kind].append(callback)
    _core.set_event_listener(_hear)


def _tell(kind, *what, **metadata):
    for listener in list(_listeners[kind]):
        listener(*what, **metadata)


def _remove(kind, callback):
    if callback not in _listeners[kind]:
        raise ValueError(f"monitoring: {callback!r} is not registered as a listener of {kind}s")
    _listeners[kind].remove(callback)
    _rest()


def record_event(event, **metadata):
    """Records an event: listener(event, **metadata)."""
    _tell("event", event, **metadata)


def record_event_duration_secs(event, duration, **metadata):
    """Records a duration in seconds: listener(event, duration, **metadata)."""
    _tell("duration", event, duration, **metadata)


def record_event_time_span(event, start_time, end_time, **metadata):
    """Records a start and an end time: listener(event, start_time, end_time, **metadata)."""
    _tell("time span", event, start_time, end_time, **metadata)


def record_scalar(event, value, **metadata):
    """Records a number: listener(event, value, **metadata)."""
    _tell("scalar", event, value, **metadata)


def register_event_listener(callback):
    """Calls a function for every event."""
    _add("event", callback)


def register_event_duration_secs_listener(callback):
    """Calls a function for every duration."""
    _add("duration", callback)


def register_event_time_span_listener(callback):
    """Calls a function for every time span."""
    _add("time span", callback)


def register_scalar_listener(callback):
    """Calls a function for every number."""
    _add("scalar", callback)


def unregister_event_listener(callback):
    """Calls it no more."""
    _remove("event", callback)


def unregister_event_duration_listener(callback):
    """Calls it no more."""
    _remove("duration", callback)


def unregister_event_time_span_listener(callback):
    """Calls it no more."""
    _remove("time span", callback)


def unregister_scalar_listener(callback):
    """Calls it no more."""
    _remove("scalar", callback)


def clear_event_listeners():
    """Removes all listeners."""
    for listeners in _listeners.values():
        listeners.clear()
    _rest()


def _rest():
    """Disables the core's events if there are no listeners."""
    if not any(_listeners.values()):
        _core.set_event_listener(None)


explain_missing(__name__)
