"""Converts arguments and results of exported texts, in which PRNG keys are words and float0 tangents are booleans."""
import contextlib
import functools

import numpy as np

from capibara import _core
from capibara._dtypes import KeyType, float0
from capibara._symbolic_tracing import has_symbolic_shape
from capibara.jax import device_count, random, tree_util
from capibara.jax._api import jit, make_jaxpr
from capibara.jax._exported_shardings import all_equations, constrain
from capibara.jax._platforms import lowering_platform
from capibara.jax._programs import eval_jaxpr
from capibara.jax.core import jaxprs_in_params
from capibara.jax.interpreters.mlir import lower_by_rule

_KEY_KINDS = {"key<fry>": "threefry2x32", "key<rbg>": "rbg", "key<urbg>": "unsafe_rbg"}


@contextlib.contextmanager
def damaged_texts():
    """A context for reading a file: names in it that are not UTF-8 are an error that says so."""
    try:
        yield
    except UnicodeDecodeError as error:
        text = error.object.decode(errors="backslashreplace")
        raise ValueError(f"export: the file is damaged: expected texts in UTF-8, got {text!r}") from None


def type_name(dtype) -> str:
    """A name that `_core.ShapedArray` accepts, for every dtype including keys and float0."""
    if isinstance(dtype, KeyType):
        return dtype.name
    return "float0" if dtype == float0 else np.dtype(dtype).name


def _to_text(value, aval):
    if isinstance(aval.dtype, KeyType):
        return random.key_data(value)
    return np.zeros(value.shape, bool) if aval.dtype == float0 else value


def _from_text(value, aval):
    if isinstance(aval.dtype, KeyType):
        return random.wrap_key_data(value, impl=_KEY_KINDS[aval.dtype.name])
    return np.zeros(value.shape, float0) if aval.dtype == float0 else value


def evaluate_module(module, in_avals, out_avals, kept, platforms, shardings, count):
    """A function of all arguments that runs a StableHLO text or artifact on the `kept` ones. A module for several platforms also takes
    the platform's index as its first argument. A module with symbolic sizes is specialized for the sizes of each call. `shardings`:
    records of those of the arguments and of the results, for this `count` of devices, if the process has as many."""
    several = 1 < count <= device_count()
    symbolic = any(map(has_symbolic_shape, in_avals))
    takes_platform, first = len(platforms) > 1, None
    programs = {}

    def run_for(types):
        with damaged_texts():
            given = (types, several) if several or types else ()
            program = _core.program_from_stablehlo(module, *given)

        def run(*values):
            first = len(values) - len(kept)
            if several:
                values = [*values[:first], *constrain(values[first:], [shardings[0][i] for i in kept])]
            results = eval_jaxpr(program.jaxpr, program.consts, *values)
            return constrain(results, shardings[1]) if several else results
        return program, jit(run)

    if not symbolic:
        program, first = run_for(())
        takes_platform = takes_platform and len(program.in_avals) == len(kept) + 1
        if len(program.in_avals) != len(kept) + takes_platform or len(program.out_avals) != len(out_avals):
            raise ValueError(f"export.deserialize: the program maps {len(program.in_avals)} arguments to {len(program.out_avals)} results, "
                             f"its description says {len(kept)} of {len(in_avals)} and {len(out_avals)}; export the function again")

    def evaluate(*values):
        current = lowering_platform()
        number = (np.int32(platforms.index(current) if current in platforms else 0),) if takes_platform else ()
        arguments = (*number, *(_to_text(values[i], in_avals[i]) for i in kept))
        run = first
        if symbolic:
            key = tuple((np.shape(value), np.dtype(value.dtype)) for value in arguments)
            if key not in programs:
                programs[key] = run_for([_core.ShapedArray(*kind) for kind in key])[1]
            run = programs[key]
        return [_from_text(result, aval) for result, aval in zip(run(*arguments), out_avals)]
    return evaluate


def with_rules(function, args, kwargs, rules):
    """The jitted function with these rules in place of some primitives."""
    @functools.wraps(function)
    def replaced(*args, **kwargs):
        closed, out = make_jaxpr(function, return_shape=True)(*args, **kwargs)
        return tree_util.tree_unflatten(tree_util.tree_structure(out), evaluate(closed, *_core.tree_leaves((args, kwargs))))

    def evaluate(closed, *values):
        known = dict(zip((*closed.jaxpr.constvars, *closed.jaxpr.invars), (*closed.consts, *values)))
        for equation in closed.jaxpr.eqns:
            inputs = [one.val if isinstance(one, _core.Literal) else known[one] for one in equation.invars]
            if equation.primitive in rules:
                results = lower_by_rule(equation.primitive, rules[equation.primitive], lowering_platform(), inputs, equation.params)
            elif equation.primitive.name == "jit":
                results = evaluate(equation.params["jaxpr"], *inputs)
            else:
                inner = {eqn.primitive for part in jaxprs_in_params(equation.params) for eqn in all_equations(part)}
                if found := inner & set(rules):
                    raise NotImplementedError(f"export: the rule for '{found.pop()}' cannot replace it inside of '{equation.primitive}'")
                results = equation.primitive.bind(*inputs, **equation.params)
                results = results if equation.primitive.multiple_results else [results]
            known.update(zip(equation.outvars, results))
        return [one.val if isinstance(one, _core.Literal) else known[one] for one in closed.jaxpr.outvars]
    return jit(replaced)
