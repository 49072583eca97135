"""jax.ad: requests to a vjp function for each argument's cotangent, and its answers."""
import dataclasses

from capibara import _core
from capibara._modules import explain_missing
from capibara.jax._programs import eval_jaxpr as _eval_jaxpr
from capibara.jax.tree_util import Partial, register_pytree_node, register_static


@register_static
@dataclasses.dataclass(frozen=True)
class GradValue:
    """The cotangent of this argument is returned."""


@register_static
@dataclasses.dataclass(frozen=True)
class DontWant:
    """The cotangent of this argument is not computed."""


@register_static
@dataclasses.dataclass(frozen=True)
class GradRef:
    """Takes the place of a cotangent that was added to the ref passed for it."""


@register_static
@dataclasses.dataclass(frozen=True)
class DidntWant:
    """Takes the place of a cotangent that was not requested."""


class VJP(Partial):
    """The pullback: from cotangents of a result to cotangents of the arguments."""

    def with_refs(self, *wanted):
        """The pullback with a ref to accumulate into, GradValue() or DontWant() for each leaf of the arguments."""
        requests, tree = _core.tree_flatten(wanted, lambda x: isinstance(x, (GradValue, DontWant)))

        def pull_back(cotangent):
            leaves, expected = _core.tree_flatten(_wanted_alone(self, cotangent, requests))
            if expected != tree:
                raise ValueError(f"with_refs: expected one entry for each leaf of the arguments, {expected}, got {tree}")
            return tree.unflatten([_answer(request, leaf) for request, leaf in zip(requests, leaves)])

        return pull_back


register_pytree_node(VJP, lambda vjp: ((vjp.args, vjp.keywords), vjp.func), lambda func, children: VJP(func, *children[0], **children[1]))


def _wanted_alone(pull_back, cotangent, requests):
    """All cotangents; those not requested are zeros without cost."""
    if not any(isinstance(request, DontWant) for request in requests):
        return pull_back(cotangent)
    from capibara.jax.interpreters.partial_eval import dce_jaxpr
    program, tree, _ = _core.make_program(pull_back, (cotangent,), {})
    used = [not isinstance(request, DontWant) for request in requests]
    smaller, used_inputs = dce_jaxpr(program.jaxpr, used)
    inputs = [leaf for leaf, is_used in zip(_core.tree_leaves(cotangent), used_inputs) if is_used]
    computed = iter(_eval_jaxpr(smaller, program.consts, *inputs))
    return tree.unflatten([next(computed) if is_used else 0.0 for is_used in used])


def _answer(request, cotangent):
    if isinstance(request, DontWant):
        return DidntWant()
    if not isinstance(request, _core.Ref):
        return cotangent
    request.addupdate(cotangent)
    return GradRef()


explain_missing(__name__)
