"""What a function that wraps another one takes over from it."""


def copy_attributes(function, wrapper):
    """What a function is called and says of itself, and attributes of its own, as functools.wraps copies them."""
    for name in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
        try:
            setattr(wrapper, name, getattr(function, name))
        except (AttributeError, TypeError):
            pass
    for name, value in (getattr(function, "__dict__", None) or {}).items():
        if name != "__wrapped__":
            try:
                setattr(wrapper, name, value)
            except (AttributeError, TypeError):  # a name that is no string, or taken by the wrapper
                pass
