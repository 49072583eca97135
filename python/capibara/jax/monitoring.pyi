"""Types of jax.monitoring: named events and durations for registered listeners."""
from collections.abc import Callable
from typing import Any

def record_event(event: str, **metadata: str | int) -> None:
    """Records an event: listener(event, **metadata)."""
def record_event_duration_secs(event: str, duration: float, **metadata: str | int) -> None:
    """Records a duration in seconds: listener(event, duration, **metadata)."""
def record_event_time_span(event: str, start_time: float, end_time: float, **metadata: str | int) -> None:
    """Records a start and an end time: listener(event, start_time, end_time, **metadata)."""
def record_scalar(event: str, value: float, **metadata: str | int) -> None:
    """Records a number: listener(event, value, **metadata)."""
def register_event_listener(callback: Callable[..., Any]) -> None:
    """Calls a function for every event."""
def register_event_duration_secs_listener(callback: Callable[..., Any]) -> None:
    """Calls a function for every duration."""
def register_event_time_span_listener(callback: Callable[..., Any]) -> None:
    """Calls a function for every time span."""
def register_scalar_listener(callback: Callable[..., Any]) -> None:
    """Calls a function for every number."""
def unregister_event_listener(callback: Callable[..., Any]) -> None:
    """Calls it no more."""
def unregister_event_duration_listener(callback: Callable[..., Any]) -> None:
    """Calls it no more."""
def unregister_event_time_span_listener(callback: Callable[..., Any]) -> None:
    """Calls it no more."""
def unregister_scalar_listener(callback: Callable[..., Any]) -> None:
    """Calls it no more."""
def clear_event_listeners() -> None:
    """Removes all listeners."""
