"""Functionalizes checks: runs a program equation by equation, with an Error to which each equation may add."""
import functools

import numpy as np

from capibara import _core
from capibara._core import ClosedJaxpr, Literal
from capibara._types import DropVar
from capibara.jax import lax
from capibara.jax import numpy as jnp
from capibara.jax import tree_util
from capibara.jax._api import checkpoint, eval_shape, jit
from capibara.jax._mesh import Mesh, PartitionSpec
from capibara.jax._shard_map import shard_map
from capibara.jax.core import Primitive
from capibara.jax.experimental._check_errors import DivisionByZeroError, Error, JaxRuntimeError, NaNError, OOBError, init_error, record

NOT_FUNCTIONAL = ("Cannot abstractly evaluate a checkify.check which was not functionalized. This probably means you tried to stage "
                  "(jit/scan/pmap/...) a `check` without functionalizing it through `checkify.checkify`.")

check_p = Primitive("check")
check_p.multiple_results = True


@check_p.def_impl
def _refuse(*leaves, err_tree, debug):
    if not debug:
        raise ValueError(NOT_FUNCTIONAL)
    return []


@check_p.def_effectful_abstract_eval
def _check_types(*avals, err_tree, debug):
    return [], {"check"}


check_p.def_lowering(_refuse)


@check_p.def_batch
def _check_batch(leaves, dims, *, err_tree, debug):
    size = next(leaf.shape[dim] for leaf, dim in zip(leaves, dims) if dim is not None)
    leaves = [jnp.broadcast_to(leaf, (size, *leaf.shape)) if dim is None else jnp.moveaxis(leaf, dim, 0) for leaf, dim in zip(leaves, dims)]
    raise_error(tree_util.tree_unflatten(err_tree, leaves), debug)
    return [], []


@check_p.def_jvp
def _check_jvp(primals, tangents, *, err_tree, debug):
    check_p.bind(*primals, err_tree=err_tree, debug=debug)
    return [], []


def raise_error(error, debug):
    """Raises a failed error now, or when the enclosing program runs."""
    while any(np.shape(slot.failed) for _, slot in error.slots()):
        error = Error({kind: _one_of(slot) for kind, slot in error.slots()}, error.sources())
    leaves, tree = tree_util.tree_flatten(error)
    if not _core.is_tracing() and not any(isinstance(leaf, _core.Tracer) for leaf in leaves):
        exception = None if debug else error.get_exception()
        if exception is not None:
            raise JaxRuntimeError(str(exception)) from exception
        return
    check_p.bind(*leaves, err_tree=tree, debug=debug)


def _throw(self):
    """Raises the first error, if any."""
    raise_error(self, False)


Error.throw = _throw  # raising may add an equation to the enclosing program


def _one_of(slot):
    """The slot of the last element that failed."""
    index = jnp.argsort(slot.failed)[-1]
    return type(slot)(slot.failed[index], slot.code[index], tuple(x[index] for x in slot.details))


def run_program(program, enabled, error, *args):
    """The outputs of a program, and the error with the checks of its equations added."""
    jaxpr, values = program.jaxpr, {}

    def read(atom):
        return atom.val if isinstance(atom, Literal) else values[atom]

    values.update(zip(jaxpr.constvars, program.consts))
    values.update(zip(jaxpr.invars, args))
    for equation in jaxpr.eqns:
        rule = _rules.get(equation.primitive.name, _nan_rule if getattr(equation.primitive, "nan_checked", False) else _unchecked)
        error, outputs = rule(equation, enabled, error, *map(read, equation.invars))
        if not isinstance(outputs, (list, tuple)):
            outputs = [outputs]
        values.update((var, value) for var, value in zip(equation.outvars, outputs) if not isinstance(var, DropVar))
    return error, [read(atom) for atom in jaxpr.outvars]


def _bind(equation, *args):
    return equation.primitive.bind(*args, **equation.params)


def _unchecked(equation, enabled, error, *args):
    return error, _bind(equation, *args)


def _check_nan(equation, enabled, error, outputs):
    if NaNError not in enabled:
        return error
    name, place = equation.primitive.name, equation.source_info
    flags = [jnp.any(jnp.isnan(x)) for x in (outputs if isinstance(outputs, list) else [outputs]) if jnp.issubdtype(x.dtype, np.number)]
    failed = functools.reduce(jnp.logical_or, flags) if flags else jnp.asarray(False)
    return record(error, NaNError, failed, (), lambda: NaNError(place, name))


def _nan_rule(equation, enabled, error, *args):
    outputs = _bind(equation, *args)
    return _check_nan(equation, enabled, error, outputs), outputs


def _division_rule(equation, enabled, error, x, y):
    if DivisionByZeroError in enabled:
        place = equation.source_info
        error = record(error, DivisionByZeroError, jnp.any(jnp.equal(y, 0)), (), lambda: DivisionByZeroError(place))
    return _nan_rule(equation, enabled, error, x, y)


def _check_bounds(equation, error, indices, last, axes, shape):
    """The last dimension of `indices` holds positions along `axes`; each must be in 0..last."""
    indices = jnp.asarray(indices)
    last = jnp.asarray(np.minimum(last, np.iinfo(indices.dtype).max), indices.dtype)
    outside = (indices < 0) | (indices > jnp.broadcast_to(last, indices.shape))  # explicit, since numpy_rank_promotion may forbid it
    where = jnp.argmax(jnp.ravel(outside))
    axis = jnp.asarray(np.asarray(axes, np.int32))[where % len(axes)]
    size = jnp.asarray(np.asarray(shape, np.int32))[axis]
    details = jnp.stack([jnp.ravel(indices)[where].astype(np.int32), axis, size])
    name, place = equation.primitive.name, equation.source_info
    return record(error, OOBError, jnp.any(outside), (details,), lambda found: OOBError(place, name, tuple(shape), found))


def _dynamic_slice_rule(equation, enabled, error, operand, *starts):
    if OOBError in enabled and starts:
        last = np.subtract(operand.shape, equation.params["slice_sizes"])
        error = _check_bounds(equation, error, jnp.stack(starts), last, range(operand.ndim), operand.shape)
    return error, _bind(equation, operand, *starts)


def _dynamic_update_slice_rule(equation, enabled, error, operand, update, *starts):
    if OOBError in enabled and starts:
        last = np.subtract(operand.shape, update.shape)
        error = _check_bounds(equation, error, jnp.stack(starts), last, range(operand.ndim), operand.shape)
    return error, _bind(equation, operand, update, *starts)


def _gather_rule(equation, enabled, error, operand, indices):
    axes = equation.params["dimension_numbers"].start_index_map
    if OOBError in enabled and axes:
        last = np.subtract(operand.shape, equation.params["slice_sizes"])[list(axes)]
        error = _check_bounds(equation, error, indices, last, axes, operand.shape)
    return error, _bind(equation, operand, indices)


def _scatter_rule(equation, enabled, error, operand, indices, updates):
    outputs = _bind(equation, operand, indices, updates)
    numbers = equation.params["dimension_numbers"]
    axes = numbers.scatter_dims_to_operand_dims
    if OOBError in enabled and axes:
        window = iter(numbers.update_window_dims)
        fixed = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
        sizes = [1 if i in fixed else updates.shape[next(window)] for i in range(operand.ndim)]
        error = _check_bounds(equation, error, indices, np.subtract(operand.shape, sizes)[list(axes)], axes, operand.shape)
        error = _check_nan(equation, enabled, error, outputs)
    return error, outputs


def _checked(program, enabled, known):
    """A function (error, *args) -> (error, outputs) of a program; appends the sources that it adds to the list `known`."""
    def run(error, *args):
        error, outputs = run_program(program, enabled, error, *args)
        known.append(error.sources())
        return Error(dict(error.slots()), init_error.sources()), outputs
    return run


def _kinds(run, error, *args):
    """The kinds of error that a function may report."""
    return eval_shape(run, _bare(error), *args)[0].kinds()


def _bare(error):
    return Error(dict(error.slots()), init_error.sources())


def _complete(error, before, known):
    sources = functools.reduce(lambda a, b: a | b, known, before.sources())
    return error.with_sources(sources)


def _jit_rule(equation, enabled, error, *args):
    known = []
    run = _checked(equation.params["jaxpr"], enabled, known)
    run.__name__ = equation.params.get("name") or "checked"
    after, outputs = jit(run)(_bare(error), *args)
    return _complete(after, error, known), outputs


def _remat_rule(equation, enabled, error, *args):
    known = []
    run = checkpoint(_checked(_closed(equation.params["jaxpr"]), enabled, known), policy=equation.params["policy"],
                     prevent_cse=equation.params["prevent_cse"])
    after, outputs = run(_bare(error), *args)
    return _complete(after, error, known), outputs


def _closed(program):
    return program if isinstance(program, ClosedJaxpr) else ClosedJaxpr(program, [])


def _cond_rule(equation, enabled, error, index, *args):
    known = []
    branches = [_checked(branch, enabled, known) for branch in equation.params["branches"]]
    kinds = [kind for branch in branches for kind in _kinds(branch, error, *args)]
    after, outputs = lax.switch(_core.as_array(index), branches, _bare(error.with_kinds(kinds)), *args)
    return _complete(after, error, known), outputs


def _scan_rule(equation, enabled, error, *args):
    params, known = equation.params, []
    run = _checked(params["jaxpr"], enabled, known)
    consts, count = args[:params["num_consts"]], params["num_carry"]
    carry, xs = args[len(consts):len(consts) + count], args[len(consts) + count:]

    def step(state, slices):
        after, outputs = run(state[0], *consts, *state[1], *slices)
        return (after, outputs[:count]), outputs[count:]

    elements = [jnp.zeros(x.shape[1:], x.dtype) if params["length"] == 0 else x[0] for x in xs]
    start = _bare(error.with_kinds(_kinds(run, error, *consts, *carry, *elements)))
    (after, last), ys = lax.scan(step, (start, list(carry)), list(xs), length=params["length"], reverse=params["reverse"],
                                 unroll=params["unroll"])
    return _complete(after, error, known), [*last, *ys]


def _while_rule(equation, enabled, error, *args):
    params, known = equation.params, []
    condition, body = (_checked(params[name], enabled, known) for name in ("cond_jaxpr", "body_jaxpr"))
    if _is_mapped(params["cond_jaxpr"].jaxpr, params["body_jaxpr"].jaxpr):
        raise ValueError("Checkify does not support batched while-loops (checkify-of-vmap-of-while). \nHint: if possible, move the vmap "
                         "to the outer level to get vmap-of-checkify-of-while.")
    first, second = params["cond_nconsts"], params["body_nconsts"]
    condition_consts, body_consts, state = args[:first], args[first:first + second], args[first + second:]

    def step(carried):
        after, values = body(carried[0], *body_consts, *carried[1])
        after, _ = condition(after, *condition_consts, *values)
        return after, values

    before, _ = condition(_bare(error), *condition_consts, *state)
    kinds = eval_shape(step, (before, list(state)))[0].kinds()
    after, outputs = lax.while_loop(lambda carried: condition(init_error, *condition_consts, *carried[1])[1][0], step,
                                    (before.with_kinds(kinds), list(state)))
    return _complete(after, error, known), outputs


def _is_mapped(condition, body):
    """True for a batched loop that selects the state of finished elements: checks would see these elements too."""
    def maker(jaxpr, atom):
        return next((e.primitive.name for e in jaxpr.eqns if not isinstance(atom, Literal) and atom in e.outvars), None)

    made = [maker(body, atom) for atom in body.outvars]
    return maker(condition, condition.outvars[0]) == "reduce_or" and "select_n" in made and set(made) <= {"select_n", None}


def _shard_map_rule(equation, enabled, error, *args):
    """Each device has its own error; the results are stacked like those of a mapped computation."""
    params, known = equation.params, []
    run = _checked(_closed(params["jaxpr"]), enabled, known)
    manual = tuple(params["newly_manual_axes"])
    mesh = params["mesh"] if isinstance(params["mesh"], Mesh) else None  # None: the mesh of an enclosing map

    def body(error, *parts):
        start = error.with_kinds(_kinds(run, error, *parts))
        if params["check_vma"]:  # loops and branches require it to be varying from the start
            start = tree_util.tree_map(lambda x: lax.pcast(x, manual, to="varying"), start)
        after, outputs = run(start, *parts)
        return tree_util.tree_map(lambda x: x[None], after), list(outputs)

    mapped = shard_map(body, mesh=mesh, in_specs=(PartitionSpec(), *params["in_specs"]),
                       out_specs=(PartitionSpec(manual), list(params["out_specs"])), axis_names=set(manual), check_vma=params["check_vma"])
    after, outputs = mapped(_bare(error), *args)
    return _complete(after, error, known), outputs


def _custom_rule(equation, enabled, error, *args):
    """Takes the checks from the function; its values and derivatives remain the user's."""
    known = []
    after, _ = _checked(_closed(equation.params["call_jaxpr"]), enabled, known)(_bare(error), *map(lax.stop_gradient, args))
    return _complete(after, error, known), _bind(_Unfailing(equation), *args)


class _Unfailing:
    """An equation to bind unchanged; raises if its program contains user checks, which cannot be functionalized."""

    def __init__(self, equation):
        self.primitive, self.params = equation.primitive, equation.params
        if any(inner.primitive.name == "check" for inner in _closed(equation.params["call_jaxpr"]).jaxpr.eqns):
            raise NotImplementedError(f"checkify: a check inside of a function with derivatives of its own ({equation.primitive.name}) "
                                      "cannot be functionalized; check its arguments outside of it")


def _check_rule(equation, enabled, error, *leaves):
    failed = tree_util.tree_unflatten(equation.params["err_tree"], leaves)
    for kind, slot in failed.slots():
        if kind.category in enabled:
            error = error.failing(kind, slot.failed, slot.code, slot.details, failed.sources())
    return error, []


_rules = {
    "scatter": _scatter_rule, "scatter-add": _scatter_rule, "scatter-mul": _scatter_rule, "scatter-min": _scatter_rule,
    "scatter-max": _scatter_rule, "div": _division_rule, "gather": _gather_rule,
    "dynamic_slice": _dynamic_slice_rule, "dynamic_update_slice": _dynamic_update_slice_rule, "check": _check_rule, "jit": _jit_rule,
    "remat2": _remat_rule, "cond": _cond_rule, "scan": _scan_rule, "while": _while_rule,
    "shard_map": _shard_map_rule,
    "custom_jvp_call": _custom_rule, "custom_vjp_call": _custom_rule}
