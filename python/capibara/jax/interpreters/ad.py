"""jax.interpreters.ad: derivative rules of primitives."""
from capibara import _core
from capibara._modules import explain_missing
from capibara._types import UndefinedPrimal, Zero  # noqa: F401


class _Rules:
    """A table of rules: entries go to the primitive, which answers for those of the catalog."""

    def __init__(self, define, rule):
        self._define, self._rule = define, rule
        self._known = {}

    def __setitem__(self, primitive, rule):
        getattr(primitive, self._define)(rule)
        self._known[primitive] = rule

    def __getitem__(self, primitive):
        rule = self.get(primitive)
        if rule is None:
            raise KeyError(primitive)
        return rule

    def __contains__(self, primitive):
        return primitive in self._known or (isinstance(primitive, _core.CatalogPrimitive) and primitive.rules[self._rule])

    def get(self, primitive, default=None):
        if primitive in self._known:
            return self._known[primitive]
        return getattr(primitive, self._rule) if primitive in self else default


add_jaxvals_p = next(primitive for primitive in _core.catalog() if primitive.name == "add_any")
primitive_jvps = _Rules("def_jvp", "jvp")
primitive_transposes = _Rules("def_transpose", "transpose")


def instantiate_zeros(tangent):
    """A symbolic zero as an array."""
    if isinstance(tangent, Zero):
        return _core.library_function("numpy", "zeros")(tangent.aval.shape, tangent.aval.dtype)
    return tangent


def zeros_like_aval(aval):
    """An array of zeros of a type."""
    return _core.library_function("numpy", "zeros")(aval.shape, aval.dtype)


def add_tangents(x, y):
    """The sum of two tangents, either of which may be a symbolic zero."""
    if isinstance(x, Zero):
        return y
    return x if isinstance(y, Zero) else add_jaxvals(x, y)


def add_jaxvals(x, y):
    """The sum of two tangents or cotangents."""
    return add_jaxvals_p.bind(x, y)


def is_undefined_primal(x):
    """Whether an operand is one in which an equation is linear."""
    return isinstance(x, UndefinedPrimal)


def defjvp(primitive, *jvps):
    """One rule for each operand: jvp(tangent, *operands, **params)."""
    def rule(primals, tangents, **params):
        result = primitive.bind(*primals, **params)
        terms = [jvp(t, *primals, **params) for jvp, t in zip(jvps, tangents) if jvp is not None and not isinstance(t, Zero)]
        return result, sum(terms[1:], terms[0]) if terms else Zero(result.aval.to_tangent_aval())
    primitive_jvps[primitive] = rule


def defjvp2(primitive, *jvps):
    """One rule for each operand: jvp(tangent, result, *operands, **params)."""
    def rule(primals, tangents, **params):
        result = primitive.bind(*primals, **params)
        terms = [jvp(t, result, *primals, **params) for jvp, t in zip(jvps, tangents) if jvp is not None and not isinstance(t, Zero)]
        return result, sum(terms[1:], terms[0]) if terms else Zero(result.aval.to_tangent_aval())
    primitive_jvps[primitive] = rule


def deflinear2(primitive, transpose_rule):
    """A linear primitive and its transpose: transpose(cotangent, *operands, **params)."""
    def rule(primals, tangents, **params):
        tangents = [instantiate_zeros(t) for t in tangents]
        return primitive.bind(*primals, **params), primitive.bind(*tangents, **params)
    primitive_jvps[primitive] = rule
    primitive_transposes[primitive] = transpose_rule


def deflinear(primitive, transpose_rule):
    """A linear primitive and its transpose: transpose(cotangent, **params)."""
    deflinear2(primitive, lambda cotangent, *_, **params: transpose_rule(cotangent, **params))


explain_missing(__name__)
