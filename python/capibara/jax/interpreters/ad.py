"""jax.interpreters.ad: derivative rules of primitives."""
from capibara import _core
from capibara._modules import explain_missing
from capibara._types import UndefinedPrimal, Zero  # noqa: F401


class _Kind(type):
    """A metaclass for a transform's traces or tracers: here these are instances of one class with a kind."""

    def __instancecheck__(cls, value):
        trace = _core.tracer_trace(value) if isinstance(value, _core.Tracer) else value
        return isinstance(value, cls._base) and trace.kind == cls._kind

    def __call__(cls, *_, **__):
        raise TypeError(f"{cls.__name__}: transforms make them; there is no other way to do so")


class JVPTrace(metaclass=_Kind):
    """The trace of a function differentiated in forward mode."""

    _base, _kind = _core.Trace, "jvp"


class JVPTracer(metaclass=_Kind):
    """A value with a tangent during differentiation; its attributes are primal and tangent."""

    _base, _kind = _core.Tracer, "jvp"


class _Rules:
    """A table of rules: entries are stored in the primitive, which also provides the rules of the catalog."""

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
    """Converts a symbolic zero to an array."""
    return zeros_like_aval(tangent.aval) if isinstance(tangent, Zero) else tangent


class GradAccum:
    """Where a rule adds the cotangents of one argument, by `accum`."""

    def __init__(self, aval):
        self.aval = aval


class ValAccum(GradAccum):
    """The sum of an argument's cotangents, in `value`; None before the first."""

    value = None

    def accum(self, x):
        """Adds a cotangent."""
        if x is None or isinstance(x, Zero):
            return
        self.value = x if self.value is None else self.aval.vspace_add(self.value, x)


class NullAccum(GradAccum):
    """The place of an argument that is not differentiated."""

    def accum(self, _):
        """Ignores the cotangent."""


def zeros_like_aval(aval):
    """The zero of a type: an array of zeros, or what the type of a value above arrays says; float0 zeros are NumPy arrays."""
    if not isinstance(aval, _core.ShapedArray):
        return aval.vspace_zero()
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
    """True if an operand is a linear operand of an equation being transposed."""
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


def defbilinear(primitive, lhs_rule, rhs_rule):
    """A primitive that is linear in each of two operands: rule(cotangent, lhs or its type, rhs or its type, **params)."""
    def transpose(cotangent, lhs, rhs, **params):
        if is_undefined_primal(lhs) == is_undefined_primal(rhs):
            raise TypeError(f"the transpose of '{primitive}' is of one operand at a time, got {lhs!r} and {rhs!r}")
        if is_undefined_primal(lhs):
            return (None if isinstance(cotangent, Zero) else lhs_rule(cotangent, lhs, rhs, **params)), None
        return None, (None if isinstance(cotangent, Zero) else rhs_rule(cotangent, lhs, rhs, **params))

    defjvp(primitive, lambda tangent, x, y, **params: primitive.bind(tangent, y, **params),
           lambda tangent, x, y, **params: primitive.bind(x, tangent, **params))
    primitive_transposes[primitive] = transpose


def get_primitive_transpose(primitive):
    """The transpose rule of a primitive."""
    if primitive not in primitive_transposes:
        raise NotImplementedError(f"Transpose rule (for reverse-mode differentiation) for '{primitive}' not implemented")
    return primitive_transposes[primitive]


_core.register_node(Zero, lambda zero: ((), zero.aval), lambda aval, _: Zero(aval))
_core.register_node(UndefinedPrimal, lambda primal: ((), primal.aval), lambda aval, _: UndefinedPrimal(aval))
explain_missing(__name__)
