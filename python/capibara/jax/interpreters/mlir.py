"""jax.interpreters.mlir: lowering rules of primitives, written as functions on arrays."""
from capibara import _core
from capibara._modules import explain_missing


class _LoweredFunction:
    """A function to be traced into the program where a primitive is lowered."""

    def __init__(self, function, multiple_results):
        self.function, self.multiple_results = function, multiple_results


def lower_fun(fun, multiple_results=True):
    """A lowering rule from a Python function: it is traced into the program."""
    return _LoweredFunction(fun, multiple_results)


def register_lowering(prim, rule, platform=None, inline=True, cacheable=True):
    """Gives a user's primitive its lowering, as lower_fun makes it: for one platform, or for all that have none of their own.

    A rule that builds MLIR operations is not used: the primitive is evaluated by its implementation, which it must have.
    """
    if not isinstance(rule, _LoweredFunction):
        if prim._handle.has("impl"):
            return rule
        raise NotImplementedError(f"register_lowering: the rule of '{prim.name}' must be made by mlir.lower_fun, since rules that "
                                  "build MLIR operations have no meaning here; or give the primitive an implementation first, by def_impl")
    rules = prim.__dict__.setdefault("_lowerings", {})
    rules[platform] = rule.function

    def lowered(*args, **params):
        chosen = rules.get(_core.lowering_platform(), rules.get(None))
        if chosen is None:
            raise NotImplementedError(f"MLIR translation rule for primitive '{prim.name}' not found for platform {_core.lowering_platform()}; "
                                      f"there are rules for {sorted(rules)}")
        return chosen(*args, **params)

    prim.def_lowering(lowered)
    return rule


explain_missing(__name__)
