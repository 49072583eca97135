"""jax._src.state.discharge: functions of mutable arrays as functions of their values."""
from capibara import _core, _lifting
from capibara._modules import explain_missing
from capibara._types import DropVar
from capibara.jax import ref as _ref
from capibara.jax import tree_util
from capibara.jax._api import make_jaxpr
from capibara.jax._programs import effects_on_refs
from capibara.jax.interpreters import ad


def run_state(f):
    """A function of values that makes a mutable array of each, calls f with these, and returns their final values."""
    def wrapped(init):
        leaves, structure = tree_util.tree_flatten(init)
        refs = [_ref.new_ref(leaf if _lifting.is_hi(leaf) else _core.as_array(leaf)) for leaf in leaves]
        f(structure.unflatten(refs))
        return structure.unflatten([_ref.freeze(ref) for ref in refs])
    return wrapped


run_state_reference = run_state


def discharge_state(jaxpr, should_discharge=True):
    """A closed program whose mutable arguments are values, with their final values after the results.

    `should_discharge`: for each argument, whether it is discharged; one that is not stays mutable.
    """
    program = jaxpr.jaxpr
    chosen = [should_discharge] * len(program.invars) if isinstance(should_discharge, bool) else list(should_discharge)
    if len(chosen) != len(program.invars):
        raise ValueError(f"discharge_state: should_discharge must have one entry for each of {len(program.invars)} arguments, "
                         f"got {len(chosen)}")
    discharged = [selected and var.aval._is_ref for var, selected in zip(program.invars, chosen)]

    def of_values(*args):
        values = dict(zip((*program.constvars, *program.invars), (*jaxpr.consts, *args)))
        current = {var: arg for var, arg, is_discharged in zip(program.invars, args, discharged) if is_discharged}

        def read(atom):
            return atom.val if isinstance(atom, _core.Literal) else values[atom]

        for equation in program.eqns:
            operands, name = equation.invars, str(equation.primitive)
            refs = [atom for atom in operands if not isinstance(atom, _core.Literal) and atom in current]
            if refs and name in effects_on_refs:
                ref, *new = operands
                results = [] if name == "addupdate" else [current[ref]]
                if name == "swap":
                    current[ref] = read(new[0])
                elif name == "addupdate":
                    current[ref] = ad.add_jaxvals(current[ref], read(new[0]))
            else:
                inner = {ref: _ref.new_ref(current[ref]) for ref in refs}
                given = [inner[atom] if not isinstance(atom, _core.Literal) and atom in inner else read(atom) for atom in operands]
                results = equation.primitive.bind(*given, **equation.primitive.get_bind_params(equation.params))
                current.update((ref, _ref.freeze(one)) for ref, one in inner.items())
            results = results if isinstance(results, (list, tuple)) else [results]
            values.update((var, value) for var, value in zip(equation.outvars, results) if not isinstance(var, DropVar))
        return [*map(read, program.outvars), *current.values()]
    types = [var.aval if not is_discharged else _core.ShapedArray(var.aval.shape, var.aval.dtype, var.aval.weak_type)
             for var, is_discharged in zip(program.invars, discharged)]
    return make_jaxpr(of_values)(*types)
explain_missing(__name__)
