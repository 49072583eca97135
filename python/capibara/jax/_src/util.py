"""jax._src.util: small functions on sequences and functions."""
import functools

from capibara._modules import explain_missing
from capibara.jax.api_util import safe_map  # noqa: F401


def safe_zip(*args):
    """zip as a list, over sequences of equal length."""
    args = [list(arg) for arg in args]
    if len({len(arg) for arg in args}) > 1:
        raise ValueError(f"safe_zip: the arguments have different lengths: {[len(arg) for arg in args]}")
    return list(zip(*args))


def foreach(f, *args):
    """Calls a function for the elements of sequences of equal length."""
    safe_map(f, *args)


def unzip2(pairs):
    """The first and the second parts of pairs."""
    pairs = list(pairs)
    return tuple(a for a, _ in pairs), tuple(b for _, b in pairs)


def unzip3(triples):
    """The first, second and third parts of triples."""
    triples = list(triples)
    return tuple(a for a, _, _ in triples), tuple(b for _, b, _ in triples), tuple(c for _, _, c in triples)


def concatenate(sequences):
    """The elements of all sequences in one list."""
    return [element for sequence in sequences for element in sequence]


def split_list(args, sizes):
    """Splits a sequence into parts of the given sizes, and the rest."""
    args, parts = list(args), []
    if sum(sizes) > len(args):
        raise ValueError(f"split_list: sizes {list(sizes)} are more than the {len(args)} elements")
    for size in sizes:
        parts.append(args[:size])
        args = args[size:]
    return [*parts, args]


def partition_list(choose, values):
    """(those whose flag is false, those whose flag is true)."""
    pairs = safe_zip(choose, values)
    return [value for flag, value in pairs if not flag], [value for flag, value in pairs if flag]


def merge_lists(choose, values_false, values_true):
    """The inverse of partition_list."""
    false, true = iter(values_false), iter(values_true)
    return [next(true if flag else false) for flag in choose]


def curry(f):
    """curry(f)(*args)(*more) is f(*args, *more)."""
    return functools.wraps(f)(functools.partial(functools.partial, f))


def tuple_insert(values, position, value):
    """A tuple with one more element."""
    return (*values[:position], value, *values[position:])


def tuple_delete(values, position):
    """A tuple with one element removed."""
    return (*values[:position], *values[position + 1:])


def wraps(wrapped, namestr=None, docstr=None, **names):
    """functools.wraps with formatted names: '{fun}' is the function's own name."""
    def decorate(fun):
        name = getattr(wrapped, "__name__", "<unnamed function>")
        doc = getattr(wrapped, "__doc__", "") or ""
        fun = functools.wraps(wrapped)(fun)
        fun.__name__ = name if namestr is None else namestr.format(fun=name, **names)
        fun.__doc__ = doc if docstr is None else docstr.format(fun=name, doc=doc, **names)
        return fun
    return decorate


class HashableFunction:
    """A function that compares equal to others with the same code and closure."""

    def __init__(self, f, closure):
        self.f, self.closure = f, closure

    def __call__(self, *args, **kwargs):
        return self.f(*args, **kwargs)

    def __eq__(self, other):
        return type(other) is HashableFunction and (self.f.__code__, self.closure) == (other.f.__code__, other.closure)

    def __hash__(self):
        return hash((self.f.__code__, self.closure))


def as_hashable_function(closure):
    """Makes a function compare equal to others with the same code and closure."""
    return lambda f: HashableFunction(f, closure)


explain_missing(__name__)
