"""Copies attributes from a wrapped function to its wrapper."""


def copy_attributes(function, wrapper):
    """Copies a function's name, documentation and own attributes, like functools.wraps."""
    for name in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
        try:
            setattr(wrapper, name, getattr(function, name))
        except (AttributeError, TypeError):
            pass
    for name, value in (getattr(function, "__dict__", None) or {}).items():
        if name != "__wrapped__":
            try:
                setattr(wrapper, name, value)
            except (AttributeError, TypeError):  # a name that is not a string, or is read-only on the wrapper
                pass
