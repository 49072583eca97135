"""linear_call: a function that is linear in its second argument, with a user-defined transpose."""
import functools

from capibara import _core


class _Direction:
    """A program of (captured values, residuals, linear operands), and the constructor of the opposite direction."""

    def __init__(self, program, captured, transposed):
        self.program, self.captured, self.transposed = program, captured, transposed


def linear_call(fun, fun_transpose, residual_args, linear_args):
    """fun(residuals, linear), linear in its second argument, with fun_transpose(residuals, cotangent) as its transpose."""
    residuals, residual_tree = _core.tree_flatten(residual_args)
    linear, linear_tree = _core.tree_flatten(linear_args)
    types = [_core.type_of(leaf) for leaf in (*residuals, *linear)]
    forward, out_tree = _traced(fun, residual_tree, linear_tree, types)

    @functools.cache
    def transposed():
        back, back_tree = _traced(fun_transpose, residual_tree, out_tree, [*types[:len(residuals)], *forward.program.out_avals])
        if back_tree != linear_tree:
            raise TypeError(f"transpose output pytree structure must match that of linear inputs, got output structure {back_tree} and input "
                            f"structure {linear_tree}.")
        back.transposed = lambda: forward
        return back

    forward.transposed = transposed
    return out_tree.unflatten(_bind(forward, len(residuals), residuals, linear))


def _traced(fun, residual_tree, linear_tree, types):
    """The program of a function of (residuals, linear), and the structure of its result."""
    count = residual_tree.num_leaves
    out_tree = []

    def flat(*leaves):
        result, tree = _core.tree_flatten(fun(residual_tree.unflatten(leaves[:count]), linear_tree.unflatten(leaves[count:])))
        out_tree.append(tree)
        return result

    program, _, _ = _core.make_program(flat, tuple(types), {})
    return _Direction(program, list(program.consts), None), out_tree[-1]


def _bind(direction, count, residuals, linear):
    return _primitive().bind(*direction.captured, *residuals, *linear, direction=direction, residuals=count)


def _evaluate(*args, direction, residuals):
    from capibara.jax._programs import eval_jaxpr
    captured = len(direction.captured)
    return eval_jaxpr(direction.program.jaxpr, list(args[:captured]), *args[captured:])


@functools.cache
def _primitive():
    from capibara.jax.core import Primitive
    from capibara.jax.interpreters import ad

    primitive = Primitive("linear_call")
    primitive.multiple_results = True
    primitive.def_impl(_evaluate)
    primitive.def_abstract_eval(lambda *avals, direction, residuals: direction.program.out_avals)
    primitive.def_lowering(_evaluate)

    def jvp(primals, tangents, direction, residuals):
        fixed = len(direction.captured) + residuals
        if not all(isinstance(tangent, ad.Zero) for tangent in tangents[:fixed]):
            raise NotImplementedError("linear_call: derivatives with respect to its residuals are not defined, as in jax")
        moved = [ad.instantiate_zeros(tangent) for tangent in tangents[fixed:]]
        params = {"direction": direction, "residuals": residuals}
        return primitive.bind(*primals, **params), primitive.bind(*primals[:fixed], *moved, **params)

    def transpose(cotangents, *args, direction, residuals):
        fixed = len(direction.captured) + residuals
        other = direction.transposed()
        given = [ad.instantiate_zeros(cotangent) for cotangent in cotangents]
        return [None] * fixed + list(_bind(other, residuals, args[len(direction.captured):fixed], given))

    primitive.def_jvp(jvp)
    primitive.def_transpose(transpose)
    return primitive
