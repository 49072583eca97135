"""jax.interpreters.partial_eval: functions staged into programs."""
from capibara import _core
from capibara._modules import explain_missing


def trace_to_jaxpr_dynamic(fun, in_avals, *_, **__):
    """The program of a function for given types: (jaxpr, output types, constants)."""
    function = getattr(fun, "call_wrapped", fun)
    program, _, _ = _core.make_program(lambda *args: function(*args), tuple(in_avals), {})
    return program.jaxpr, program.out_avals, program.consts


explain_missing(__name__)
