"""Counts what a traced program needs, equation by equation."""
import dataclasses
import functools
import logging
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import _core
from capibara._modules import explain_missing
from capibara.jax import tree_util
from capibara.jax.core import DropVar, Literal, ShapedArray
from capibara.jax.interpreters import partial_eval

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RooflineShape:
    """The shape and dtype of a value."""

    shape: tuple[int, ...]
    dtype: Any

    @classmethod
    def from_aval(cls, aval: Any) -> "RooflineShape":
        """The shape of an array type."""
        if not isinstance(aval, ShapedArray):
            raise TypeError(f"RooflineShape.from_aval: expected the type of an array, a ShapedArray, got {type(aval).__name__}")
        return cls(shape=tuple(aval.shape), dtype=aval.dtype)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """The bytes of all elements."""
        return self.size * self.dtype.itemsize

    @classmethod
    def total_bytes(cls, avals: Sequence[Any]) -> int:
        """The bytes of several array types together."""
        return sum(cls.from_aval(aval).bytes for aval in avals)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RooflineResult:
    """What a program needs.

    flops, hbm_bytes: of matmuls alone, with the rest fused into them; unfused_flops, unfused_hbm_bytes: of every operation by itself.
    ici_bytes, ici_latency: bytes over one link and hops, for each axis of the mesh. peak_hbm_bytes: of the values alive together.
    """

    flops: int = 0
    unfused_flops: int = 0
    ici_bytes: dict[str, int] = dataclasses.field(default_factory=dict)
    ici_latency: dict[str, int] = dataclasses.field(default_factory=dict)
    hbm_bytes: int = 0
    peak_hbm_bytes: int = 0
    unfused_hbm_bytes: int = 0

    @classmethod
    def zeros(cls) -> "RooflineResult":
        """Of an empty program."""
        return cls()

    def _combined(self, merge):
        """The result of `merge(field name, value)` for every field."""
        return RooflineResult(**{part.name: merge(part.name, getattr(self, part.name)) for part in dataclasses.fields(self)})

    def __add__(self, other: "RooflineResult") -> "RooflineResult":
        def merge(name, mine):
            theirs = getattr(other, name)
            if name == "peak_hbm_bytes":
                return max(mine, theirs)
            if isinstance(mine, dict):
                return {axis: mine.get(axis, 0) + theirs.get(axis, 0) for axis in {**mine, **theirs}}
            return mine + theirs
        return self._combined(merge)

    def __mul__(self, constant: int | float) -> "RooflineResult":
        def scaled(_, value):
            return {axis: int(one * constant) for axis, one in value.items()} if isinstance(value, dict) else int(value * constant)
        return self._combined(scaled)

    __rmul__ = __mul__


@dataclasses.dataclass(frozen=True, kw_only=True)
class RooflineRuleContext:
    """What a rule knows of an equation besides its parameters; jaxpr_eqn_ctx is None, since equations have no context of their own."""

    name_stack: Any
    primitive: Any
    avals_in: Sequence[Any]
    avals_out: Sequence[Any]
    jaxpr_eqn_ctx: Any
    mesh: Any
    pin_lhs_in_vmem: bool
    pin_rhs_in_vmem: bool


_Rule = Callable[..., RooflineResult]
_registered: dict[Any, _Rule] = {}
_LIBRARY = frozenset(_core.catalog())  # of these, primitives without a rule count nothing


def register_roofline(prim: Any) -> Callable[[_Rule], _Rule]:
    """A decorator that makes rule(context, *shapes, **params) what is counted for a primitive."""
    def register(rule):
        _registered[prim] = rule
        return rule
    return register


def register_standard_roofline(prim: Any) -> None:
    """Makes a primitive count nothing, without the warning about primitives that have no rule."""
    _registered[prim] = lambda context, *shapes, **params: RooflineResult.zeros()


def _rule_of(primitive):
    """The rule of a primitive; None for one without, which is reported unless it belongs to the library."""
    if primitive not in _registered and primitive not in _LIBRARY:
        _log.warning("No roofline rule for %s, skipping it. Add one by roofline.register_roofline.", primitive)
    return _registered.get(primitive)


def _interpret(program, mesh, pins):
    """The sum over the equations of a program and of those nested in it; the steps of a loop count once, as in jax."""
    jaxpr = getattr(program, "jaxpr", program)

    def shape_of(atom):
        return RooflineShape.from_aval(atom.aval)

    last_use = {}
    for number, equation in enumerate(jaxpr.eqns):
        last_use.update((atom, number) for atom in equation.invars if not isinstance(atom, Literal))
    results = {atom for atom in jaxpr.outvars if not isinstance(atom, Literal)}
    alive = sum(shape_of(var).bytes for var in [*jaxpr.constvars, *jaxpr.invars])
    total, peak = RooflineResult(), alive
    for number, equation in enumerate(jaxpr.eqns):
        params = equation.params
        inner = params.get("jaxpr", params.get("call_jaxpr"))
        if inner is not None:
            total += _interpret(inner, mesh, pins)
        elif (rule := _rule_of(equation.primitive)) is not None:
            context = RooflineRuleContext(
                name_stack=getattr(equation.source_info, "name_stack", None), primitive=equation.primitive,
                avals_in=[atom.aval for atom in equation.invars], avals_out=[var.aval for var in equation.outvars],
                jaxpr_eqn_ctx=None, mesh=mesh, **pins)
            total += rule(context, *map(shape_of, equation.invars), **params)
        alive += sum(shape_of(var).bytes for var in equation.outvars)
        ended = {atom for atom in equation.invars if last_use.get(None if isinstance(atom, Literal) else atom) == number} - results
        alive -= sum(shape_of(atom).bytes for atom in ended)
        peak = max(peak, alive)
        alive -= sum(shape_of(var).bytes for var in equation.outvars if isinstance(var, DropVar))
    return total + RooflineResult(peak_hbm_bytes=peak)


def _with_pullback(f):
    """The cotangents of a function's arguments, for cotangents equal to its results, in bfloat16."""
    @functools.wraps(f)
    def pulled(*args):
        results, pullback = jax.vjp(f, *args)
        return pullback(tree_util.tree_map(jnp.bfloat16, results))
    return pulled


def roofline(f: Callable[..., Any], mesh: Any = None, in_specs: Any = None, out_specs: Any = None, *, pin_lhs_in_vmem: bool = False,
             pin_rhs_in_vmem: bool = False, vjp: bool = False, print_jaxpr: bool = False) -> Callable[..., tuple[Any, RooflineResult]]:
    """A function of f's arguments, arrays or their shapes, that gives the shapes of f's results and what one device needs for them.

    mesh, in_specs, out_specs: f runs on every device of a mesh, as in shard_map. pin_lhs_in_vmem, pin_rhs_in_vmem: matmuls neither
    load their left operand nor store their result, or do not load their right one. vjp: counts the derivative too. print_jaxpr: prints
    the program.
    """
    @functools.wraps(f)
    def counted(*args):
        whole = f
        if mesh is not None and in_specs is not None and out_specs is not None:
            whole = jax.shard_map(whole, mesh=mesh, in_specs=in_specs, out_specs=out_specs)
        if vjp:
            whole = _with_pullback(whole)
        program, shapes = jax.make_jaxpr(whole, return_shape=True)(*args)
        if mesh is not None and out_specs is not None:
            leaves, structure = tree_util.tree_flatten(shapes)
            specs = tree_util.broadcast_prefix(out_specs, shapes, is_leaf=lambda spec: isinstance(spec, jax.sharding.PartitionSpec))
            shapes = tree_util.tree_unflatten(structure, [
                jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=jax.sharding.NamedSharding(mesh, spec))
                for leaf, spec in zip(leaves, specs, strict=True)])
        program, _ = partial_eval.dce_jaxpr(program.jaxpr, [True] * len(program.jaxpr.outvars))
        mapped = [equation for equation in program.eqns if equation.primitive.name == "shard_map"]
        if mapped:
            program = mapped[-1].params["jaxpr"]
        if print_jaxpr:
            print(program)
        return shapes, _interpret(program, mesh, {"pin_lhs_in_vmem": pin_lhs_in_vmem, "pin_rhs_in_vmem": pin_rhs_in_vmem})
    return counted


def roofline_and_grad(f: Callable[..., Any], mesh: Any, in_specs: Any, out_specs: Any, *, pin_lhs_in_vmem: bool = False,
                      pin_rhs_in_vmem: bool = False, print_jaxpr: bool = False,
                      ) -> Callable[..., tuple[Any, RooflineResult, RooflineResult]]:
    """roofline of f, and of f's derivative with arguments of bfloat16 (int32 ones stay): (shapes, result, result of the derivative)."""
    options = {"pin_lhs_in_vmem": pin_lhs_in_vmem, "pin_rhs_in_vmem": pin_rhs_in_vmem, "print_jaxpr": print_jaxpr}

    @functools.wraps(f)
    def counted(*args):
        shapes, forward = roofline(f, mesh, in_specs, out_specs, **options)(*args)

        def halved(x):
            return jax.ShapeDtypeStruct(x.shape, np.int32 if x.dtype == np.int32 else jnp.bfloat16, sharding=x.sharding)
        _, derivative = roofline(f, mesh, in_specs, out_specs, vjp=True, **options)(*tree_util.tree_map(halved, args))
        return shapes, forward, derivative
    return counted


explain_missing(__name__)
