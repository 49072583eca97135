"""jax.debug: looking at values while a program runs."""
from capibara import _core
from capibara._modules import explain_missing


def callback(callback, *args, ordered=False, partitioned=False, **kwargs):
    """Calls a Python function with values of the running program."""
    _core.debug_callback(callback, args, kwargs, ordered)


def print(fmt, *args, ordered=False, partitioned=False, skip_format_check=False, _use_logging=False, **kwargs):
    """Prints values of the running program: debug.print("x = {x}", x=x)."""
    import builtins
    if not skip_format_check:
        try:
            fmt.format(*["" for _ in args], **{name: "" for name in kwargs})
        except (ValueError, TypeError):
            pass  # a format such as {:.2f} does not take a text; the names are what is checked

    def show(*values, **names):
        import numpy as np
        builtins.print(fmt.format(*[np.asarray(v) if hasattr(v, "shape") else v for v in values],
                                  **{k: np.asarray(v) if hasattr(v, "shape") else v for k, v in names.items()}))

    _core.debug_callback(show, args, kwargs, ordered)


def breakpoint(*, backend=None, filter_frames=True, num_frames=None, ordered=False, token=None, **kwargs):
    """Stops in Python's debugger when the program gets here."""
    import pdb
    _core.debug_callback(lambda: pdb.set_trace(), (), {}, ordered)


explain_missing(__name__)
