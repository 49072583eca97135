"""jax.core: inspection and evaluation of programs, and user-defined primitives."""
import difflib
import functools
import typing

import ml_dtypes
import numpy as np

from capibara import _core
from capibara._core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, ShapedArray, Trace, Tracer, Var  # noqa: F401
from capibara._errors import ConcretizationTypeError as _ConcretizationTypeError
from capibara._errors import InconclusiveDimensionOperation, JaxprTypeError  # noqa: F401
from capibara._effects import AbstractToken, Effect, Token  # noqa: F401
from capibara._modules import explain_missing
from capibara._symbolic_sizes import OPERATIONS as _OPERATIONS, SymbolicSize as _SymbolicSize, extremum as _symbolic_extremum
from capibara._types import DropVar, UndefinedPrimal, Zero  # noqa: F401
from capibara.jax._api import jit as _jit
from capibara.jax._programs import (  # noqa: F401
    DebugInfo,
    Effects,
    eval_jaxpr,
    gensym,
    get_aval,
    new_jaxpr_eqn,
    no_effects,
    pytype_aval_mappings,
)

AbstractValue = ShapedArray
Atom = (Var, Literal)
Value = typing.Any
ParamDict = dict[str, typing.Any]
_user_primitives = {}


class _PrimitiveClass(type):
    """Makes the library's operations instances of Primitive too."""

    def __instancecheck__(cls, value):
        return super().__instancecheck__(value) or (cls is Primitive and isinstance(value, _core.CatalogPrimitive))


class Primitive(metaclass=_PrimitiveClass):
    """A user-defined operation, with rules added one by one."""

    def __init__(self, name):
        self.name = name
        self._handle = _core.UserPrimitive(name)
        self.call_primitive = self.map_primitive = False
        _user_primitives[name] = self

    @property
    def multiple_results(self):
        return self._handle.multiple_results

    @multiple_results.setter
    def multiple_results(self, value):
        self._handle.multiple_results = bool(value)

    def __repr__(self):
        return self.name

    def bind(self, *args, **params):
        """Applies the primitive under the current transformation."""
        return self._handle.bind(*args, **params)

    def get_bind_params(self, params):
        """The arguments of bind for an equation with these parameters."""
        return dict(params)

    def def_impl(self, impl):
        """Sets the evaluation on concrete arrays."""
        self.impl = impl
        self._handle.set_impl(impl)
        return impl

    def def_abstract_eval(self, abstract_eval):
        """Sets the rule for the types of results, given those of the arguments."""
        def rule(*avals, **params):
            return self._avals(abstract_eval(*avals, **params))
        self._handle.set_abstract_eval(rule)
        self._handle.effectful = False
        self._result_avals = rule
        return abstract_eval

    def def_effectful_abstract_eval(self, abstract_eval):
        """Like def_abstract_eval, for rules that return (types, effects): equations with effects are never removed."""
        def rule(*avals, **params):
            types, effects = abstract_eval(*avals, **params)
            return self._avals(types), bool(effects)
        self._handle.set_abstract_eval(rule)
        self._handle.effectful = True
        self._result_avals = lambda *avals, **params: rule(*avals, **params)[0]
        return abstract_eval

    def result_avals(self, *avals, **params):
        """The types of the results as a list, from the abstract evaluation."""
        types = self._result_avals(*avals, **params)
        return types if self.multiple_results else [types]

    def _avals(self, types):
        if self.multiple_results != isinstance(types, (list, tuple)):
            raise ValueError(f"{self.name}.abstract_eval() method should return a tuple or list of types where the primitive has "
                             f"multiple_results, and one type where it has not, got {types!r}")
        return [_as_aval(a) for a in types] if self.multiple_results else _as_aval(types)

    def def_jvp(self, jvp):
        """jvp(primals, tangents, **params) -> (result, tangent); a tangent may be a symbolic Zero."""
        def rule(primals, tangents, **params):
            return jvp(primals, tangents, **params)
        self._handle.set_jvp(rule)
        return jvp

    def def_transpose(self, transpose):
        """transpose(cotangent, *arguments, **params) -> one cotangent or None for each argument."""
        self._handle.set_transpose(transpose)
        return transpose

    def def_batch(self, batch):
        """batch(arguments, dims, **params) -> (result, dim); a dim may be None."""
        self._handle.set_batch(batch)
        return batch

    def def_axis_batch(self, batch):
        """The same for batch(axis size, axis name, None, arguments, dims, **params)."""
        self._handle.set_axis_batch(batch)
        return batch

    def def_lowering(self, lowering):
        """Sets the lowering to other operations."""
        self._handle.set_lowering(lowering)
        return lowering

    def __eq__(self, other):
        if isinstance(other, _core.CatalogPrimitive):
            return self._handle.primitive == other
        return self is other

    def __hash__(self):
        return hash(self._handle.primitive)


_catalog = {primitive.name: primitive for primitive in _core.catalog()}
call_p, closed_call_p = _catalog["call"], _catalog["closed_call"]
call = call_p.bind


def call_impl(*args, subfuns):
    """A call outside any program: the results of the function."""
    fun, = subfuns
    return fun.call_wrapped(*args)


def _as_aval(value):
    if isinstance(value, ShapedArray):
        return value
    return ShapedArray(value.shape, value.dtype, getattr(value, "weak_type", False))


def find_user_primitive(name):
    """The user's primitive with this name."""
    if isinstance(name, Primitive):
        return name
    if name not in _user_primitives:
        nearest = difflib.get_close_matches(name, _user_primitives, n=1)
        hint = f"did you mean '{nearest[0]}'?" if nearest else (
            f"register one first, by @core.custom_prim({name!r}) above a function of arrays; jit needs none to choose a device's kernels")
        known = ", ".join(sorted(_user_primitives)) or "none"
        raise ValueError(f"custom_op: no primitive is registered as '{name}' (argument 'optimization'; registered: {known}); {hint}")
    return _user_primitives[name]


def custom_prim(name, impl=None, *, abstract_eval=None, jvp=None, transpose=None, batch=None):
    """A primitive from its evaluation and any rules; also a decorator for the evaluation.

    Without an abstract_eval the type of the result is found by evaluating arrays of zeros.
    """
    if impl is None:
        return functools.partial(custom_prim, name, abstract_eval=abstract_eval, jvp=jvp, transpose=transpose, batch=batch)
    primitive = Primitive(name)
    primitive.def_impl(impl)
    if abstract_eval is None:
        def abstract_eval(*avals, **params):
            zeros = _core.library_function("numpy", "zeros")
            with _core.NamedScope(""):
                return _core.as_array(impl(*[zeros(a.shape, a.dtype) for a in avals], **params)).aval
    primitive.def_abstract_eval(abstract_eval)
    for rule, define in ((jvp, primitive.def_jvp), (transpose, primitive.def_transpose), (batch, primitive.def_batch)):
        if rule is not None:
            define(rule)
    return primitive


def custom_jit(fun=None, **options):
    """`jax.jit` under the name that programs for other back ends use: the same options, the same compiled program.

    For debugging, use jit's options: debug=True runs the function on concrete values, so that Python's print shows them.
    """
    return _jit(fun, **options) if fun is not None else functools.partial(_jit, **options)


def jaxpr_as_fun(closed_jaxpr):
    """A program as a function of its flat arguments."""
    def run(*args):
        return eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, *args)
    return run


def valid_jaxtype(x):
    """True if a value can be an argument of traced functions."""
    try:
        _core.type_of(x)
        return True
    except TypeError:
        return False


def check_jaxpr(jaxpr):
    """Raises JaxprTypeError if a program is not well-typed."""
    if not isinstance(jaxpr, ClosedJaxpr):
        zeros = _core.library_function("numpy", "zeros")
        jaxpr = ClosedJaxpr(jaxpr, [zeros(var.aval.shape, var.aval.dtype) for var in jaxpr.constvars])
    _core.verify_program(jaxpr)


def concrete_or_error(force, value, context=""):
    """A concrete value; otherwise raises an error that says what needed it."""
    if isinstance(value, Tracer):
        raise _ConcretizationTypeError(f"Abstract tracer value encountered where concrete value is expected: {value}\n{context}")
    return value if force is None else force(value)


def mapped_aval(size, axis, aval):
    """The type of one element of a mapped value."""
    if axis is None:
        return aval
    shape = list(aval.shape)
    if shape[axis] != size:
        raise ValueError(f"axis {axis} of {aval} must have size {size}")
    del shape[axis]
    return aval.update(shape=tuple(shape))


def unmapped_aval(size, axis, aval, *_):
    """The type of a mapped value, from that of one element."""
    if axis is None:
        return aval
    shape = list(aval.shape)
    shape.insert(axis, size)
    return aval.update(shape=tuple(shape))


def raise_to_shaped(aval, weak_type=None):
    """Returns the type: all types here have shapes."""
    return aval if weak_type is None else aval.update(weak_type=weak_type)


def jaxprs_in_params(params):
    """The programs among an equation's parameters."""
    for value in params.values():
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, Jaxpr):
                yield one
            elif isinstance(one, ClosedJaxpr):
                yield one.jaxpr


def subjaxprs(jaxpr):
    """The programs inside a program's equations."""
    for equation in jaxpr.eqns:
        yield from jaxprs_in_params(equation.params)


def is_constant_dim(dimension):
    """True if a dimension is a number: always, since shapes are static."""
    return isinstance(dimension, int)


def eval_context():
    """A context in which operations are evaluated immediately, even while a function is being traced."""
    return _core.NamedScope("")


ensure_compile_time_eval = eval_context


def min_dim(d1, d2):
    """The smaller of two dimensions."""
    return _extremum("min", d1, d2)


def max_dim(d1, d2):
    """The larger of two dimensions."""
    return _extremum("max", d1, d2)


def _extremum(name, d1, d2):
    symbolic = next((size for size in (d1, d2) if isinstance(size, _SymbolicSize)), None)
    return _OPERATIONS[name](d1, d2) if symbolic is None else _symbolic_extremum(name, d1, d2, symbolic.scope)


def trace_state_clean():
    """True if no function is being traced on this thread."""
    return not _core.is_tracing()


def get_opaque_trace_state(convention=None):
    """An object that compares equal as long as the same functions are being traced; `convention` names the calling library."""
    if not isinstance(convention, (str, type(None))):
        raise TypeError(f"get_opaque_trace_state: the convention must be a name, got {convention!r}")
    return _core.trace_state()


def find_top_trace(_):
    """The current trace, to which operations go."""
    return _core.current_trace()


def take_current_trace():
    """A context in which operations are evaluated immediately; __enter__ returns the previous trace."""
    return _core.TraceSwitch(_core.evaluation_trace())


class set_current_trace:
    """A context in which operations go to the given trace."""

    def __init__(self, trace, check_leaks=False):
        self._switch = _core.TraceSwitch(trace)

    def __enter__(self):
        self._switch.__enter__()

    def __exit__(self, *exception):
        self._switch.__exit__(*exception)


class TraceTag:
    """Marks the tracers of one transformation; all marks are equal."""

    def __eq__(self, other):
        return isinstance(other, TraceTag)

    def __hash__(self):
        return hash(TraceTag)


def unsafe_am_i_under_a_jit():
    """True if an enclosing function is being traced into a program."""
    return "jit" in _core.trace_kinds()


def unsafe_am_i_under_a_vmap():
    """True if an enclosing function is being mapped."""
    return "vmap" in _core.trace_kinds()


def unsafe_get_axis_names():
    """The names of mapped axes, outermost first."""
    return _core.axis_names()


def nonempty_axis_env():
    """True if a mapped axis has a name."""
    return bool(_core.axis_names())


def primal_dtype_to_tangent_dtype(dtype):
    """The dtype of tangents: float0 for integers and booleans."""
    return ShapedArray((), dtype).to_tangent_aval().dtype


def _numpy_types():
    names = [name for name in dir(ml_dtypes) if name.startswith(("float", "int", "uint", "bfloat")) and isinstance(getattr(ml_dtypes, name), type)]
    plain = [np.bool_, np.longlong, *(np.dtype(code).type for code in "bhilqBHILQefdFD")]
    return {np.ndarray, *plain, *(getattr(ml_dtypes, name) for name in names if issubclass(getattr(ml_dtypes, name), np.generic))}


array_types = _numpy_types()
explain_missing(__name__)
