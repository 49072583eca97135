"""jax.interpreters.partial_eval: stages functions into programs."""
from capibara import _core
from capibara._core import Jaxpr, Literal
from capibara._modules import explain_missing
from capibara._types import DropVar


def trace_to_jaxpr_dynamic(fun, in_avals, *_, **__):
    """The program of a function for given types: (jaxpr, output types, constants)."""
    function = getattr(fun, "call_wrapped", fun)
    program, _, _ = _core.make_program(lambda *args: function(*args), tuple(in_avals), {})
    return program.jaxpr, program.out_avals, program.consts


def dce_jaxpr(jaxpr, used_outputs, instantiate=False):
    """The program for the outputs marked in `used_outputs`, without unneeded equations: (jaxpr, which inputs it reads).

    Inputs marked in `instantiate` are kept, and so are all constants.
    """
    count = len(jaxpr.constvars)
    kept = [instantiate] * len(jaxpr.invars) if isinstance(instantiate, bool) else list(instantiate)
    open_program = Jaxpr([], [*jaxpr.constvars, *jaxpr.invars], jaxpr.outvars, jaxpr.eqns)
    pruned, used_inputs = _core.dce_program(open_program, list(used_outputs), [True] * count + kept)
    constvars, invars = pruned.invars[:count], pruned.invars[count:]
    used_inputs = [used or stays for used, stays in zip(used_inputs[count:], kept)]
    return Jaxpr(constvars, invars, pruned.outvars, pruned.eqns), used_inputs


class PartialVal(tuple):
    """A known value, (None, value), or one of which only the type is known, (type, None)."""

    def __new__(cls, pair):
        aval, value = pair
        return tuple.__new__(cls, (aval, value))

    @classmethod
    def known(cls, value):
        return cls((None, value))

    @classmethod
    def unknown(cls, aval):
        return cls((aval, None))

    def is_known(self):
        return self[0] is None

    def get_known(self):
        return self[1]

    def get_aval(self):
        return _core.type_of(self[1]) if self.is_known() else self[0]


def trace_to_jaxpr_nounits(fun, pvals, instantiate=False):
    """Evaluates the results that depend only on known arguments: (jaxpr of the others, results, constants)."""
    function = getattr(fun, "call_wrapped", fun)
    types = tuple(pval[0] for pval in pvals if not pval.is_known())

    def of_unknown(*values):
        values = iter(values)
        return list(function(*(pval.get_known() if pval.is_known() else next(values) for pval in pvals)))

    program, _, captured = _core.make_open_program(of_unknown, types)
    found = _evaluate_known(program.jaxpr, program.consts, [*((value,) for value in captured), *(None for _ in types)])
    results = [PartialVal.unknown(aval) if instantiate or value is None else PartialVal.known(value[0])
               for value, aval in zip(found, program.out_avals)]
    open_results = [i for i, result in enumerate(results) if not result.is_known()]
    rest, _, _ = _core.make_program(lambda *values: [of_unknown(*values)[i] for i in open_results], types, {})
    return rest.jaxpr, results, rest.consts


def _evaluate_known(jaxpr, consts, args):
    """The outputs of a program, each (value,), or None if it depends on an argument that is None."""
    values = dict(zip(jaxpr.constvars, ((const,) for const in consts)))
    values.update(zip(jaxpr.invars, args))

    def read(atom):
        return (atom.val,) if isinstance(atom, Literal) else values[atom]

    for equation in jaxpr.eqns:
        operands = [read(atom) for atom in equation.invars]
        if equation.primitive.name == "jit":
            inner = equation.params["jaxpr"]
            outputs = _evaluate_known(inner.jaxpr, inner.consts, operands)
        elif any(operand is None for operand in operands) or equation.effects:
            outputs = [None] * len(equation.outvars)
        else:
            outputs = equation.primitive.bind(*(value for value, in operands), **equation.params)
            outputs = [(value,) for value in (outputs if isinstance(outputs, (list, tuple)) else [outputs])]
        values.update((var, value) for var, value in zip(equation.outvars, outputs) if not isinstance(var, DropVar))
    return [read(atom) for atom in jaxpr.outvars]


explain_missing(__name__)
