"""Pickle and cloudpickle support for jitted functions and library functions."""
import copyreg
import sys

from capibara import _core
from capibara.jax._api import jit


def _from_pickle(fun, options):
    return jit(fun, **options)


def _reduced(compiled):
    """A jitted function's name if a module has it, else the function and its jit options: it is traced again."""
    holder = sys.modules.get(compiled.__module__)
    for name in compiled.__qualname__.split("."):
        holder = getattr(holder, name, None)
    if holder is compiled and compiled.__module__ != "__main__":
        return compiled.__qualname__
    return _from_pickle, (compiled.__wrapped__, compiled._options or {})


copyreg.pickle(_core.JitFunction, _reduced)
copyreg.pickle(_core.LibraryFunction, lambda function: function.__qualname__)  # by its name in its module
