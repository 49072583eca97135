"""Values at the border of exported texts, which hold PRNG keys as words and have booleans where a tangent is float0."""
import numpy as np

from capibara import _core
from capibara._dtypes import KeyType, float0
from capibara.jax import random
from capibara.jax._api import jit
from capibara.jax._programs import eval_jaxpr

_KEY_KINDS = {"key<fry>": "threefry2x32", "key<rbg>": "rbg", "key<urbg>": "unsafe_rbg"}


def type_name(dtype) -> str:
    """A name that `_core.ShapedArray` takes for every dtype, keys and float0 among them."""
    if isinstance(dtype, KeyType):
        return dtype.name
    return "float0" if dtype == float0 else np.dtype(dtype).name


def _to_text(value, aval):
    if isinstance(aval.dtype, KeyType):
        return random.key_data(value)
    return np.zeros(aval.shape, bool) if aval.dtype == float0 else value


def _from_text(value, aval):
    if isinstance(aval.dtype, KeyType):
        return random.wrap_key_data(value, impl=_KEY_KINDS[aval.dtype.name])
    return np.zeros(aval.shape, float0) if aval.dtype == float0 else value


def evaluate_text(text, in_avals, out_avals, kept):
    """The function of a StableHLO text, of all arguments, of which it takes those that are kept."""
    program = _core.program_from_stablehlo(text)
    if len(program.in_avals) != len(kept) or not all(0 <= i < len(in_avals) for i in kept) or len(program.out_avals) != len(out_avals):
        raise ValueError(f"export.deserialize: the program maps {len(program.in_avals)} arguments to {len(program.out_avals)} results, its "
                         f"description says {len(kept)} of {len(in_avals)} and {len(out_avals)}; export the function again")
    run = jit(lambda *values: eval_jaxpr(program.jaxpr, program.consts, *values))

    def evaluate(*values):
        results = run(*(_to_text(values[i], in_avals[i]) for i in kept))
        return [_from_text(result, aval) for result, aval in zip(results, out_avals)]
    return evaluate
