"""Taking apart, building and running programs in Python: user-built equations, and debug information of functions."""
import contextlib
import functools
import inspect
import operator
from collections.abc import Set
from typing import Any, NamedTuple

from capibara import _core, _tracebacks
from capibara._core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from capibara._converters import RulesByClass
from capibara._effects import AccumEffect, Effect, ReadEffect, WriteEffect
from capibara._types import DropVar
from capibara.jax._abstract_mesh import get_abstract_mesh, use_abstract_mesh
from capibara.jax.tree_util import keystr

Effects = Set[Effect]
no_effects = frozenset()


class DebugInfo(NamedTuple):
    """Debug information of a traced function: the purpose, the source position, names of arguments and results."""

    traced_for: str
    func_src_info: str
    arg_names: Any
    result_paths: Any

    @property
    def func_name(self):
        return self.func_src_info.split(" ")[0]

    @property
    def func_filename(self):
        place = self.func_src_info.partition(" at ")[2]
        return place.rpartition(":")[0] or None

    @property
    def func_lineno(self):
        line = self.func_src_info.partition(" at ")[2].rpartition(":")[2]
        return int(line) if line.isdigit() else None

    def replace_func_name(self, name):
        rest = self.func_src_info.split(" ")[1:]
        return self._replace(func_src_info=" ".join([name, *rest]))

    def resolve_result_paths(self):
        """A copy with the result of the paths' thunk."""
        return self._replace(result_paths=tuple(self.result_paths())) if callable(self.result_paths) else self

    def safe_arg_names(self, expected):
        """The names, empty if unknown; their number must be as expected."""
        assert self.arg_names is None or len(self.arg_names) == expected, (expected, self)
        return ("",) * expected if self.arg_names is None else self.arg_names

    def safe_result_paths(self, expected):
        """The paths, empty if unknown; their number must be as expected."""
        assert self.result_paths is None or len(self.result_paths) == expected, (expected, self)
        return ("",) * expected if self.result_paths is None else self.result_paths

    def filter_arg_names(self, keep):
        if self.arg_names is None:
            return None
        return tuple(name for name, kept in zip(self.safe_arg_names(len(keep)), keep) if kept)


def source_of(function):
    """'name at file:line' of a function, or its name if the position is unknown."""
    while hasattr(function, "__wrapped__") or hasattr(function, "func"):
        function = getattr(function, "__wrapped__", None) or function.func
    name = getattr(function, "__name__", None) or "<unknown>"
    code = getattr(function, "__code__", None)
    return f"{name} at {code.co_filename}:{code.co_firstlineno}" if code else name


def argument_names(signature, args, kwargs, static_argnums=(), static_argnames=()):
    """The paths of the leaves of the dynamic arguments, named after the parameters where these match."""
    fixed = {n % len(args) for n in static_argnums} if args else set()
    parameters = list(signature.parameters.values()) if signature else []
    try:
        if signature:
            signature.bind(*args, **kwargs)
    except TypeError:
        parameters = []
    single = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    named = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
    more = next((p.name for p in parameters if p.kind is p.VAR_KEYWORD), "kwargs")
    roots = [(single[i] if i < len(single) else f"{rest}[{i - len(single)}]", value)
             for i, value in enumerate(args) if i not in fixed]
    roots += [(name if name in named else f"{more}[{name!r}]", kwargs[name]) for name in sorted(kwargs) if name not in static_argnames]
    return tuple(f"{root}{keystr(path)}" for root, value in roots for path, _ in _core.tree_flatten_with_path(value, None)[0])


def describe_function(traced_for, fun, args, kwargs, static_argnums=(), static_argnames=(), result_paths=None):
    """The DebugInfo of a function for example arguments."""
    try:
        signature = inspect.signature(fun)
    except (ValueError, TypeError):
        signature = None
    names = argument_names(signature, args, kwargs, static_argnums, static_argnames)
    return DebugInfo(traced_for, source_of(fun), names, result_paths)


class _Equation(JaxprEqn):
    """An equation that is not yet part of a program."""

    def __init__(self, invars, outvars, primitive, params, effects, source_info):
        self._parts = {"invars": list(invars), "outvars": list(outvars), "primitive": primitive, "params": dict(params),
                       "effects": effects, "source_info": source_info}

    def __getattribute__(self, name):
        if name in ("invars", "outvars", "primitive", "params", "effects", "source_info"):
            return self._parts[name]
        return super().__getattribute__(name)

    def __repr__(self):
        return f"<equation of {self.primitive} with {len(self.invars)} operands>"


_Equation.__name__ = _Equation.__qualname__ = "JaxprEqn"


def new_jaxpr_eqn(invars, outvars, primitive, params, effects, source_info=None, ctx=None):
    """An equation from its parts, for building a Jaxpr."""
    if _core.config_values()["enable_checks"]:
        assert all(isinstance(atom, (Var, Literal)) for atom in invars), f"operands must be Var or Literal, got {invars}"
        assert all(isinstance(var, (Var, DropVar)) for var in outvars), f"results must be Var, got {outvars}"
    return _Equation(invars, outvars, primitive, params, effects, source_info)


def gensym():
    """The constructor of new variables: Var itself, called with a type."""
    return Var


def _replace_in_equation(self, **changes):
    """A copy of the equation with parts replaced."""
    names = ("invars", "outvars", "primitive", "params", "effects", "source_info")
    parts = {name: getattr(self, name) for name in names} | {n: v for n, v in changes.items() if n != "ctx"}
    return new_jaxpr_eqn(**parts)


def _replace_in_program(self, **changes):
    """A copy of the program with parts replaced."""
    parts = {name: getattr(self, name) for name in ("constvars", "invars", "outvars", "eqns")} | changes
    return Jaxpr(**parts)


pytype_aval_mappings = RulesByClass(_core.type_of)  # {class other than arrays: function that returns the type of its objects}


@_tracebacks.boundary
def get_aval(x):
    """The abstract type of a value."""
    for kind in type(x).__mro__ if pytype_aval_mappings else ():
        if kind in pytype_aval_mappings:
            return pytype_aval_mappings[kind](x)
    return _core.type_of(x)


@_tracebacks.boundary
def _mesh_of(equation):
    """The mesh context in which an equation was traced: a function may have changed the types of mesh axes."""
    around = get_abstract_mesh()
    if around.empty or equation.primitive.name == "reshard":
        return contextlib.nullcontext()
    own = next((var.aval.sharding.mesh for var in equation.invars if hasattr(var.aval, "sharding")), around)
    return contextlib.nullcontext() if own == around else use_abstract_mesh(own)


def eval_jaxpr(jaxpr, consts, *args, propagate_source_info=True):
    """Runs a program equation by equation."""
    jaxpr, values = getattr(jaxpr, "jaxpr", jaxpr), {}

    def read(atom):
        return atom.val if isinstance(atom, Literal) else values[atom]

    def write(var, value):
        if checked:
            got = get_aval(value)
            assert (got.shape, got.dtype) == (var.aval.shape, var.aval.dtype), f"eval_jaxpr: expected {var.aval}, got {got}"
        values[var] = value

    checked = _core.config_values()["enable_checks"]
    for var, value in zip(jaxpr.constvars, consts, strict=True):
        write(var, value)
    for var, value in zip(jaxpr.invars, args, strict=True):
        write(var, value)
    for equation in jaxpr.eqns:
        with _mesh_of(equation):
            outputs = equation.primitive.bind(*map(read, equation.invars), **equation.primitive.get_bind_params(equation.params))
        if not isinstance(outputs, (list, tuple)):
            outputs = [outputs]
        for var, value in zip(equation.outvars, outputs, strict=True):
            if not isinstance(var, DropVar):
                write(var, value)
    return [read(atom) for atom in jaxpr.outvars]


def _bind_params(self, params):
    """Arguments of bind for an equation with these parameters: calls take the function; calls with custom rules take it in addition."""
    if not self.call_primitive and self.name != "custom_jvp_call":
        return dict(params)
    from capibara.jax.extend.linear_util import wrap_init
    program = params["call_jaxpr"]
    jaxpr, consts = (program.jaxpr, program.consts) if isinstance(program, ClosedJaxpr) else (program, ())
    function = {"subfuns": (wrap_init(functools.partial(eval_jaxpr, jaxpr, consts)),)}
    return function if self.call_primitive else {**params, **function}


_core.CatalogPrimitive.get_bind_params = _bind_params


JaxprEqn.replace = _replace_in_equation
Jaxpr.replace = _replace_in_program


# ---- effects on mutable arrays, each with the variable that it is on

effects_on_refs = {}  # {name of an operation on a mutable array: its effect}
effects_on_refs["get"] = ReadEffect
effects_on_refs["swap"] = WriteEffect
effects_on_refs["addupdate"] = AccumEffect


def _parts(equation):
    """Pairs of a program in an equation's parameters and the operands of its inputs."""
    params, operands = equation.params, equation.invars
    if "cond_jaxpr" in params and "body_jaxpr" in params:
        first, second = params["cond_nconsts"], params["body_nconsts"]
        carry = operands[first + second:]
        return [(params["cond_jaxpr"].jaxpr, [*operands[:first], *carry]),
                (params["body_jaxpr"].jaxpr, [*operands[first:first + second], *carry])]
    if "branches" in params:
        return [(branch.jaxpr, operands[1:]) for branch in params["branches"]]
    programs = [value.jaxpr if isinstance(value, ClosedJaxpr) else value for value in params.values()
                if isinstance(value, (ClosedJaxpr, Jaxpr))]
    return [(program, operands) for program in programs if len(program.invars) == len(operands)]


def ref_effects(program):
    """The effects of a program on the mutable arrays among its inputs and constants."""
    refs = {var for var in (*program.constvars, *program.invars) if var.aval._is_ref}
    found = set()
    if not refs:
        return found
    for equation in program.eqns:
        kind = effects_on_refs.get(str(equation.primitive))
        if kind is not None:
            if equation.invars[0] in refs:
                found.add(kind(equation.invars[0]))
            continue
        for inner, operands in _parts(equation):
            outer = dict(zip(inner.invars, operands))
            for effect in ref_effects(inner):
                operand = outer.get(effect.input)
                if operand is not None and not isinstance(operand, Literal) and operand in refs:
                    found.add(type(effect)(operand))
    return found


def _effects(of_class):
    own = vars(of_class)["effects"]

    def effects(self):
        every = own.__get__(self)
        if not any(isinstance(effect, (ReadEffect, WriteEffect)) for effect in every):
            return every
        return {effect for effect in every if not isinstance(effect, (ReadEffect, WriteEffect))} | ref_effects(getattr(self, "jaxpr", self))
    return property(effects, doc="What the program does besides computing results.")


for _class in (Jaxpr, ClosedJaxpr):
    _class.effects = _effects(_class)
for _name in ("constvars", "invars", "outvars"):
    setattr(ClosedJaxpr, _name, property(operator.attrgetter("jaxpr." + _name), doc=f"The {_name} of the program."))
