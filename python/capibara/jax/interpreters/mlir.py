"""jax.interpreters.mlir: lowering rules of primitives, which expand programs when these are lowered or compiled."""
import types
from collections.abc import Callable, Sequence

from capibara import _core
from capibara._modules import explain_missing
from capibara.jax import _hlo_operations as hlo, _module_view as ir  # noqa: F401: operations, and classes of modules of lowered functions
from capibara.jax._platforms import lowering_platform


_PLATFORMS = ("cpu", "cuda", "gpu", "reference", "rocm", "tpu")


class LoweringRuleContext(types.SimpleNamespace):
    """A rule's context: the primitive, the types of operands and results, and the platform."""

    def replace(self, **changes) -> "LoweringRuleContext":
        """A copy with entries replaced."""
        return type(self)(**{**vars(self), **changes})


class _LoweredFunction:
    """A rule that is traced into the program in place of a primitive."""

    def __init__(self, function, multiple_results):
        self.function, self.multiple_results = function, multiple_results

    def __call__(self, _, *args, **params):
        results = self.function(*args, **params)
        return list(results) if self.multiple_results else [results]


def lower_fun(fun: Callable, multiple_results: bool = True) -> Callable:
    """A lowering rule from a Python function: it is traced into the program."""
    return _LoweredFunction(fun, multiple_results)


def register_lowering(prim, rule: Callable, platform: str | None = None, inline: bool = True, cacheable: bool = True) -> Callable:
    """Registers the lowering of a user's primitive: for one platform, or for all without their own.

    A rule is made by lower_fun, or takes (ctx, *operands, **params) and returns a list: it may use its operands, elementwise operations
    of jax.extend.mlir.dialects.stablehlo, other rules of lower_fun and emit_python_callback. If it builds other operations of MLIR,
    programs call back the implementation instead, with one warning.
    """
    if platform is not None and platform not in _PLATFORMS and not _core.is_plugin_platform(platform):
        raise NotImplementedError(f"Registering an MLIR lowering rule for primitive {prim} for an unknown platform {platform}. Known "
                                  f"platforms are: {', '.join(_PLATFORMS)}.")
    if isinstance(prim, _core.CatalogPrimitive):
        raise NotImplementedError(f"register_lowering: '{prim}' is an operation of the library, whose lowering cannot be replaced; "
                                  "define a primitive of your own")
    rules = prim.__dict__.setdefault("_lowerings", {})
    rules[platform] = rule

    def lowered(*args, **params):
        platform = lowering_platform()
        chosen = rules.get(platform, rules.get(None))
        if chosen is None:
            raise NotImplementedError(f"MLIR translation rule for primitive '{prim.name}' not found for platform {platform}; "
                                      f"there are rules for {sorted(rules)}")
        if isinstance(chosen, _LoweredFunction):
            return chosen(None, *args, **params)
        return lower_by_rule(prim, chosen, platform, args, params)

    prim.def_lowering(lowered)
    return rule


def _result_avals(prim, avals_in, params):
    if not isinstance(prim, _core.CatalogPrimitive):
        return prim.result_avals(*avals_in, **params)
    found = _core.eval_shape(lambda *values: prim.bind(*values, **params), tuple(avals_in), {})
    return [_core.ShapedArray(one.shape, one.dtype) for one in _core.tree_leaves(found)]


def lower_by_rule(prim, rule, platform, args, params):
    """Calls a rule for MLIR values with traced arrays instead."""
    avals_in = [_core.type_of(arg) for arg in args]
    module = types.SimpleNamespace(platforms=(platform,), add_keepalive=lambda keepalive: None)
    ctx = LoweringRuleContext(primitive=prim, avals_in=avals_in, avals_out=_result_avals(prim, avals_in, params), module_context=module)
    try:
        return [_core.as_array(value) for value in rule(ctx, *args, **params)]
    except Exception as error:
        reason = f"its lowering builds MLIR operations, which have no meaning here ({type(error).__name__}: {error})"
        if isinstance(prim, _core.CatalogPrimitive) or not prim._handle.has("impl"):
            raise NotImplementedError(f"lowering of '{prim.name}': {reason}; make it by mlir.lower_fun, or give the primitive an "
                                      "implementation by def_impl") from error
        return prim._handle.call_implementation(reason, *args, **params)


def emit_python_callback(ctx: LoweringRuleContext, callback: Callable, token, operands: Sequence, operand_avals: Sequence,
                         result_avals: Sequence, *, has_side_effect: bool, returns_token: bool = True, partitioned: bool = False,
                         sharding=None) -> tuple:
    """Calls a Python function on arrays from a rule: (results, token, None)."""
    results = list(result_avals)
    if has_side_effect:
        return list(_core.io_callback(callback, results, tuple(operands), {}, False)), token, None
    return list(_core.pure_callback(callback, results, tuple(operands), {}, None)), token, None


explain_missing(__name__)
