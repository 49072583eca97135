"""jax._src.hijax: types of users above arrays, operations on their values with rules of their own, boxes and logs."""
import functools
import types
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from capibara import _core, _lifting
from capibara._effects import Effect, control_flow_allowed_effects, custom_derivatives_allowed_effects  # noqa: F401
from capibara._lifting import FlatTree
from capibara._modules import explain_missing
from capibara._types import DropVar, SymbolicZero, UndefinedPrimal, Zero
from capibara.jax import core
from capibara.jax._api import make_jaxpr, typeof, vmap
from capibara.jax.core import ShapedArray
from capibara.jax.interpreters import ad
from capibara.jax.tree_util import register_static, tree_flatten, tree_leaves, tree_unflatten


class _TypeClass(type):
    """Makes the types of arrays instances of AbstractValue too."""

    def __instancecheck__(cls, value):
        return super().__instancecheck__(value) or cls is AbstractValue and isinstance(value, ShapedArray)


class AbstractValue(metaclass=_TypeClass):
    """The type of a value."""

    is_high = has_qdd = False

    def str_short(self, short_dtypes=False, mesh_axis_types=False):
        """The type as text."""
        return repr(self)

    def to_ct_aval(self):
        """The type of cotangents."""
        return self.to_tangent_aval()

    def normalize(self):
        """The type without weak types."""
        return self

    def _missing(self, method):
        return NotImplementedError(f"{type(self).__name__}: this use of the type needs its method '{method}'; define it in the class")


Ty = LoType = AbstractValue
QDD = Hashable


def _short(kind):
    return kind.str_short(short_dtypes=True)


def _required(name):
    def method(self, *_, **__):
        raise self._missing(name)
    method.__name__ = name
    return method


class HiType(AbstractValue):
    """A type above arrays, whose values do not change: lo_ty has the types of its arrays, lower_val and raise_val convert values."""

    is_high = True
    for _name in ("lo_ty", "lower_val", "raise_val", "to_tangent_aval", "vspace_zero", "vspace_add", "dec_rank", "inc_rank",
                  "leading_axis_spec", "shard", "unshard", "nospec"):
        locals()[_name] = _required(_name)
    del _name


class aval_method:  # noqa: N801 (jax's name)
    """A function that becomes a method of traced values of a type."""

    def __init__(self, fun):
        self.fun = fun

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self.fun, instance)


class aval_property:  # noqa: N801
    """A function that becomes a property of traced values of a type."""

    def __init__(self, fget):
        self.fget = fget

    def __get__(self, instance, owner=None):
        return self if instance is None else self.fget(instance)


hijax_method = aval_method


def cur_qdd(value):
    """What the type of a mutable value depends on at this point of the program."""
    return _lifting.current_state(value)


class MutableHiType(AbstractValue):
    """A type of mutable values, whose arrays may change in number and type."""

    is_high = has_qdd = True
    is_writer = False
    type_state = aval_method(cur_qdd)
    for _name in ("lo_ty_qdd", "new_from_loval", "read_loval", "update_from_loval", "to_tangent_aval"):
        locals()[_name] = _required(_name)
    del _name

    def lo_ty(self):
        raise TypeError(f"{type(self).__name__}: the arrays of a mutable value depend on its state; use lo_ty_qdd")

    def read_loval_in(self, state, value):
        """The arrays before a call."""
        return self.read_loval(state, value)

    def read_loval_out(self, state, value):
        """The arrays after a call, as a FlatTree."""
        return FlatTree.flatten(self.read_loval(state, value))

    def update_from_loval2(self, state, value, arrays):
        """Updates the value from the FlatTree of read_loval_out."""
        self.update_from_loval(state, value, *arrays.unflatten())


class AvalQDD:
    """A type together with the state of a mutable value."""

    is_high = True
    has_qdd = True

    def __init__(self, aval, qdd):
        self.aval, self.qdd = aval, qdd


class MutableQuasiDynamicData:
    """A cell with the state of a mutable value."""

    def __init__(self, val):
        self.init_val = self.cur_val = val

    def update(self, val):
        """Sets the state."""
        self.cur_val = val


class AvalMutableQDD(AvalQDD):
    """A type together with a cell for the state of a mutable value."""

    def __init__(self, aval, mutable_qdd):
        self.aval, self.mutable_qdd = aval, mutable_qdd


def register_hitype(val_cls, typeof_fn):
    """Registers the type of a class of values above arrays."""
    _lifting.register(val_cls, typeof_fn)


class MappingSpec:
    """Where the axis of vmap is in a value above arrays."""


class HiPspec:
    """The sharding of a value above arrays over a mesh: to_lo has the specs of its arrays."""

    def to_lo(self):
        raise NotImplementedError(f"{type(self).__name__}: this use of the spec needs its method 'to_lo'; define it in the class")

    def to_tangent_spec(self):
        """The spec of tangents."""
        raise NotImplementedError(f"{type(self).__name__}: this use of the spec needs its method 'to_tangent_spec'; define it in the class")

    def to_ct_spec(self):
        """The spec of cotangents."""
        raise NotImplementedError(f"{type(self).__name__}: this use of the spec needs its method 'to_ct_spec'; define it in the class")


# Arrays, where the rules of values above arrays meet them.
ShapedArray.lo_ty = lambda self: [self]
ShapedArray.lower_val = lambda _, value: [value]
ShapedArray.raise_val = lambda _, value: value
ShapedArray.vspace_zero = lambda self: ad.zeros_like_aval(self)
ShapedArray.vspace_add = lambda _, x, y: ad.add_jaxvals(x, y)
ShapedArray.is_high = ShapedArray.has_qdd = False
if not hasattr(ShapedArray, "to_ct_aval"):
    ShapedArray.to_ct_aval = ShapedArray.to_tangent_aval
if not hasattr(ShapedArray, "normalize"):
    ShapedArray.normalize = lambda self: self.update(weak_type=False)
ShapedArray.leading_axis_spec = lambda _: 0
ShapedArray.dec_rank = lambda self, size, spec: core.mapped_aval(size, spec, self)
ShapedArray.inc_rank = lambda self, size, spec: core.unmapped_aval(size, spec, self)


# ---- operations

def _lower(kind, value, what):
    """The arrays of a value of a type, with a number of entries that fits the type."""
    if isinstance(value, Zero):
        value = kind.vspace_zero()
    arrays = list(kind.lower_val(value))
    expected = len(kind.lo_ty())
    if len(arrays) != expected:
        raise TypeError(f"{what}: {type(kind).__name__}.lower_val must return {expected} arrays, one for each type of lo_ty, got {len(arrays)}")
    return [ad.instantiate_zeros(array) for array in arrays]


def _raise(kind, arrays):
    return kind.raise_val(*arrays)


class _Operation:
    """An application of an operation above arrays: a parameter of an equation on arrays."""

    def __init__(self, rules, args):
        self.rules, self.name = rules, rules.name
        self.entries = []  # one for each argument: (type, number of arrays), or (None, mutable value)
        self.types = []
        for arg in args:
            kind = typeof(arg)
            self.types.append(kind)
            self.entries.append((None, arg) if kind.has_qdd else (kind, len(kind.lo_ty())))
        self.out_types = None

    def __repr__(self):
        def texts(types):
            return " ".join(map(_short, types))
        return f"{self.name}: {texts(self.types)} -> {texts(self.out_types)}"

    def arrays_of(self, args):
        """The arrays of the arguments."""
        return [array for (kind, _), arg in zip(self.entries, args) if kind is not None for array in _lower(kind, arg, self.name)]

    def raised(self, arrays, types=None):
        """The arguments, from their arrays."""
        arrays, values = iter(arrays), []
        for (kind, count), own in zip(self.entries, types or [kind for kind, _ in self.entries]):
            values.append(count if kind is None else _raise(own, [next(arrays) for _ in range(count)]))
        return values

    def out_arrays(self, values, types=None):
        """The arrays of the results."""
        return [array for kind, value in zip(types or self.out_types, values, strict=True) for array in _lower(kind, value, self.name)]

    def out_raised(self, arrays, types=None):
        """The results, from their arrays."""
        arrays = iter(arrays)
        return [_raise(kind, [next(arrays) for _ in kind.lo_ty()]) for kind in types or self.out_types]

    def chunks(self, arrays):
        """The arrays of each argument; those of a mutable one are none."""
        arrays = iter(arrays)
        return [[next(arrays) for _ in range(count)] if kind is not None else [] for kind, count in self.entries]

    def tangents(self, arrays):
        """The tangents of the arguments; Zero where all arrays of an argument have none."""
        tangents = []
        for (kind, value), chunk in zip(self.entries, self.chunks(arrays)):
            if kind is None:
                tangents.append(Zero(typeof(value)))
            elif all(isinstance(one, Zero) for one in chunk):
                tangents.append(Zero(kind.to_tangent_aval()))
            else:
                tangents.append(_raise(kind.to_tangent_aval(), [ad.instantiate_zeros(one) for one in chunk]))
        return tangents

    def bind(self, args):
        """The results."""
        out_types = self.out_types = self.rules.result_types(self.types)
        if not out_types or any(isinstance(kind, AvalQDD) for kind in out_types) or all(kind is None for kind, _ in self.entries) and args:
            return self.rules.evaluate([_lifting.local(arg) if typeof(arg).has_qdd else arg for arg in args])
        if not _core.is_tracing():
            return self.rules.evaluate(args)
        self.in_checkpoint = _lifting.in_checkpoint()
        arrays = _primitive(self.name).bind(*self.arrays_of(args), operation=self)
        return self.out_raised(arrays)

    def on_arrays(self, *arrays):
        """The arrays of the results, from those of the arguments."""
        results = self.out_arrays(self.rules.evaluate(self.raised(arrays)))
        promised = [kind for one in self.out_types for kind in one.lo_ty()]
        return [_as_promised(self.name, array, kind) for array, kind in zip(results, promised)]


def _as_promised(name, array, kind):
    array = _core.as_array(array)
    if array.shape != kind.shape or array.dtype != kind.dtype:
        raise TypeError(f"{name}: the operation's result has type {array.aval.str_short()}, its type rule says {kind.str_short()}")
    if array.weak_type != kind.weak_type:
        convert = core._catalog["convert_element_type"]
        array = convert.bind(array, new_dtype=kind.dtype, weak_type=kind.weak_type, sharding=None)
    return array


@functools.lru_cache(maxsize=None)
def _primitive(name):
    """The operation on arrays that stands for all operations above arrays with a name."""
    primitive = core.Primitive(name)
    primitive.multiple_results = True
    primitive.is_high = True

    @primitive.def_abstract_eval
    def types(*_, operation):
        return [kind for one in operation.out_types for kind in one.lo_ty()]

    def evaluate(*arrays, operation):
        return operation.on_arrays(*arrays)

    def jvp(primals, tangents, *, operation):
        own = operation.rules
        rule = own.jvp_in_checkpoint if operation.in_checkpoint and hasattr(own, "jvp_in_checkpoint") else own.jvp
        results, directions = rule(operation.raised(primals), operation.tangents(tangents))
        out = operation.out_arrays(results)
        tangent_types = [kind.to_tangent_aval() for kind in operation.out_types]
        out_tangents = []
        for kind, own, tangent in zip(operation.out_types, tangent_types, directions, strict=True):
            zeros = [Zero(one.to_tangent_aval()) for one in kind.lo_ty()]
            out_tangents += zeros if isinstance(tangent, Zero) else _lower(own, tangent, operation.name)
        return out, out_tangents

    def transpose(cotangents, *arrays, operation):
        given, cotangents = iter(cotangents), []
        for kind in operation.out_types:
            chunk = [next(given) for _ in kind.lo_ty()]
            own = kind.to_ct_aval()
            cotangents.append(Zero(own) if all(isinstance(one, Zero) for one in chunk) else _raise(own, [ad.instantiate_zeros(one) for one in chunk]))
        args, linear = [], []
        for (kind, value), chunk in zip(operation.entries, operation.chunks(arrays)):
            linear.append(any(isinstance(one, UndefinedPrimal) for one in chunk))
            args.append(value if kind is None else UndefinedPrimal(kind) if linear[-1] else _raise(kind, chunk))
        results = operation.rules.transpose(cotangents, args)
        out = []
        for (kind, count), is_linear, result in zip(operation.entries, linear, results):
            if kind is not None:
                has = is_linear and result is not None and not isinstance(result, Zero)
                out += _lower(kind.to_ct_aval(), result, operation.name) if has else [None] * count
        return out

    def batch(size, axis_name, _, arrays, dims, *, operation):
        results, out_dims = operation.rules.batch(size, axis_name, operation, arrays, dims)
        return results, out_dims

    primitive.jvp_rule, primitive.transpose_rule = jvp, transpose
    primitive.def_impl(evaluate)
    primitive.def_lowering(evaluate)
    primitive.def_jvp(jvp)
    primitive.def_transpose(transpose)
    primitive.def_axis_batch(batch)
    return primitive


class _Mapped:
    """The rules of an operation that vmap has mapped, on arrays."""

    def __init__(self, operation, dims, out_dims, size, axis_name):
        self.operation, self.dims, self.out_dims, self.size, self.axis_name, self.name = operation, dims, out_dims, size, axis_name, operation.name

    def _map(self, fun, in_axes, out_axes):
        return vmap(fun, in_axes=in_axes, out_axes=out_axes, axis_size=self.size, axis_name=self.axis_name)

    def result_types(self, _):
        kinds = [kind for one in self.operation.out_types for kind in one.lo_ty()]
        return [core.unmapped_aval(self.size, dim, kind) for kind, dim in zip(kinds, self.out_dims)]

    def evaluate(self, arrays):
        return self._map(lambda values: self.operation.on_arrays(*values), (list(self.dims),), self.out_dims)(list(arrays))

    def jvp(self, primals, tangents):
        rule = _primitive_rule(self.name, "jvp")
        zero = [isinstance(tangent, Zero) for tangent in tangents]
        types = [kind for kind, count in self.operation.entries if kind is not None for kind in kind.lo_ty()]
        given = [tangent for tangent, is_zero in zip(tangents, zero) if not is_zero]
        axes = [dim for dim, is_zero in zip(self.dims, zero) if not is_zero]
        absent = []

        def one(values, directions):
            directions = iter(directions)
            full = [Zero(kind.to_tangent_aval()) if is_zero else next(directions) for kind, is_zero in zip(types, zero)]
            out, out_tangents = rule(tuple(values), tuple(full), operation=self.operation)
            absent[:] = [isinstance(tangent, Zero) for tangent in out_tangents]
            return out, [tangent for tangent in out_tangents if not isinstance(tangent, Zero)]
        # A value that is not mapped has no tangent that is mapped: the tangent has the value's type.
        out, directions = self._map(one, (list(self.dims), axes), (self.out_dims, 0))(list(primals), given)
        directions = iter(directions)
        return out, [Zero(_core.type_of(value).to_tangent_aval()) if is_zero else next(directions) for value, is_zero in zip(out, absent)]

    def transpose(self, cotangents, args):
        rule = _primitive_rule(self.name, "transpose")
        linear = [isinstance(arg, UndefinedPrimal) for arg in args]
        types = [kind for kind, _ in self.operation.entries if kind is not None for kind in kind.lo_ty()]
        known = [arg for arg, is_linear in zip(args, linear) if not is_linear]
        axes = [dim for dim, is_linear in zip(self.dims, linear) if not is_linear]

        def one(cotangents, values):
            values = iter(values)
            full = [UndefinedPrimal(kind) if is_linear else next(values) for kind, is_linear in zip(types, linear)]
            return [ad.zeros_like_aval(kind.to_tangent_aval()) if result is None else result
                    for kind, result, is_linear in zip(types, rule(cotangents, *full, operation=self.operation), linear) if is_linear]
        results = iter(self._map(one, (self.out_dims, axes), 0)([ad.instantiate_zeros(one) for one in cotangents], known))
        moved = []
        for dim, is_linear in zip(self.dims, linear):
            result = next(results) if is_linear else None
            moved.append(None if result is None else result.sum(0) if dim is None else _core.library_function("numpy", "moveaxis")(result, 0, dim))
        return moved

    def batch(self, size, axis_name, operation, arrays, dims):
        return _batch_arrays(size, axis_name, operation, arrays, dims)


def _primitive_rule(name, rule):
    primitive = _primitive(name)
    return {"jvp": primitive.jvp_rule, "transpose": primitive.transpose_rule}[rule]


def _batch_arrays(size, axis_name, operation, arrays, dims):
    dims = tuple(dims)
    out_dims = [0 if depends else None for depends in _depend_on(operation, [dim is not None for dim in dims])]
    results = _Operation(_Mapped(operation, dims, out_dims, size, axis_name), arrays).bind(arrays)
    return results, out_dims


def _depend_on(operation, wanted):
    """Which arrays of the results depend on the arrays that are wanted."""
    kinds = [kind for one, _ in operation.entries if one is not None for kind in one.lo_ty()]
    program = make_jaxpr(operation.on_arrays)(*kinds).jaxpr
    dependent = {var for var, is_wanted in zip(program.invars, wanted) if is_wanted}
    for equation in program.eqns:
        if any(not isinstance(atom, core.Literal) and atom in dependent for atom in equation.invars):
            dependent.update(var for var in equation.outvars if not isinstance(var, DropVar))
    return [not isinstance(atom, core.Literal) and atom in dependent for atom in program.outvars]


class HiPrimitive(core.Primitive):
    """An operation on values above arrays: subclasses define its types, its meaning by arrays and its derivatives."""

    def __init__(self, name):
        super().__init__(name)

    def is_high(self, *_, **__):
        """True: the operation is lowered before programs are compiled."""
        return True

    def is_effectful(self, _):
        """True if the operation changes a mutable value."""
        return False

    def abstract_eval(self, *_, **__):
        """(types of the results, effects) from the types of the arguments."""
        raise NotImplementedError(f"{self.name}: the operation needs a method 'abstract_eval'; define it in {type(self).__name__}")

    def to_lojax(self, *_, **__):
        """The results, computed by operations on arrays."""
        raise NotImplementedError(f"{self.name}: the operation needs a method 'to_lojax'; define it in {type(self).__name__}")

    def jvp(self, *_, **__):
        """(results, tangents) from the arguments and their tangents."""
        raise NotImplementedError(f"{self.name}: derivatives need a method 'jvp'; define it in {type(self).__name__}")

    def transpose(self, *_, **__):
        """Cotangents of the linear arguments from those of the results."""
        raise NotImplementedError(f"{self.name}: derivatives in reverse mode need a method 'transpose'; define it in {type(self).__name__}")

    def bind(self, *args, **params):
        """Applies the operation."""
        results = _Operation(_PrimitiveRules(self, params), args).bind(args)
        return list(results) if self.multiple_results else results[0]


class _PrimitiveRules:
    """The rules of a HiPrimitive with its parameters."""

    def __init__(self, primitive, params):
        self.primitive, self.params, self.name, self.several = primitive, params, primitive.name, primitive.multiple_results

    def result_types(self, types):
        given = [AvalMutableQDD(kind, MutableQuasiDynamicData(None)) if kind.has_qdd else kind for kind in types]
        out, _ = self.primitive.abstract_eval(*given, **self.params)
        return list(out) if self.several else [out]

    def evaluate(self, args):
        results = self.primitive.to_lojax(*args, **self.params)
        results = list(results) if self.several else [results]
        for result in results:
            if _lifting.is_mutable(result):
                _lifting.created(result)
        return results

    def jvp(self, primals, tangents):
        out, out_tangents = self.primitive.jvp(primals, tangents, **self.params)
        return (list(out), list(out_tangents)) if self.several else ([out], [out_tangents])

    def transpose(self, cotangents, args):
        return self.primitive.transpose(cotangents if self.several else cotangents[0], *args, **self.params)

    def batch(self, size, axis_name, operation, arrays, dims):
        return _batch_arrays(size, axis_name, operation, arrays, dims)


def _is_type(value):
    return isinstance(value, AbstractValue)


class VJPHiPrimitive:
    """An operation on trees of values above arrays: a subclass sets in_avals, out_aval and params, and defines `expand` and derivatives."""

    effects = frozenset()

    def __init__(self):
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise AttributeError(f"subclass __init__ should set `self.{name}`")
        kind = type(self)
        if kind.vjp_bwd is not VJPHiPrimitive.vjp_bwd and kind.vjp_bwd_retval is not VJPHiPrimitive.vjp_bwd_retval:
            raise AttributeError(f"{kind.__name__}: define one of `vjp_bwd` and `vjp_bwd_retval`, got both")
        self.in_avals_flat, self.in_tree = tree_flatten(self.in_avals)
        self.out_avals_flat, self.out_tree = tree_flatten(self.out_aval)
        vars(self).update(self.params)
        self.check(*self.in_avals)

    def _needs(self, purpose, methods):
        return NotImplementedError(f"for {purpose} support, subclass {type(self)} must implement {methods}")

    def expand(self, *_):
        """The results, computed by other operations."""
        raise NotImplementedError(f"subclass {type(self)} must implement `expand`")

    def vjp_fwd(self, _nonzero, /, *_):
        """(results, residuals) for derivatives in reverse mode."""
        raise self._needs("grad", "`vjp_fwd`")

    def vjp_bwd(self, residuals, cotangent, /, *accumulators):
        """Adds the cotangents of the arguments to accumulators."""
        values = self.vjp_bwd_retval(residuals, cotangent)
        values = tree_unflatten(self.in_tree, _prefix(values, self.in_avals))
        for accumulator, value in zip(_leaves(accumulators), _leaves(values)):
            if isinstance(accumulator, ad.GradAccum) and value is not None:
                accumulator.accum(value)

    def vjp_bwd_retval(self, _residuals, _cotangent, /):
        """The cotangents of the arguments."""
        raise self._needs("grad", "`vjp_bwd` or `vjp_bwd_retval`")

    def jvp(self, _primals, _tangents):
        """(results, tangents) for derivatives in forward mode."""
        raise self._needs("jvp", "`jvp`")

    def lin(self, _nonzero, *_):
        """(results, residuals) for linearize."""
        raise self._needs("linearize", "`lin` and `linearized`")

    def linearized(self, _residuals, *_):
        """The tangents of the results, from the residuals of `lin` and the tangents of the arguments."""
        raise self._needs("linearize", "`lin` and `linearized`")

    def transpose(self, _cotangent, *_):
        """Adds the cotangents of the linear arguments to accumulators."""
        raise self._needs("transpose", "`transpose`")

    def batch(self, axis_data, args, dims):
        """(results, their mapped axes) under vmap."""
        out_dim = self.batch_dim_rule(axis_data, dims)
        return vmap(self.expand, in_axes=dims, out_axes=out_dim, axis_size=axis_data.size, axis_name=axis_data.name)(*args), out_dim

    def batch_dim_rule(self, _axis_data, _dims, /):
        """The mapped axes of the results, from those of the arguments."""
        raise self._needs("vmap", "`batch` or `batch_dim_rule`")

    def check(self, *_):
        """Raises if the types of the arguments do not fit; subclasses may override it."""

    def __call__(self, *args):
        values, tree = tree_flatten(args)
        if tree != self.in_tree:
            raise TypeError(f"{type(self).__name__}: expected arguments of structure {self.in_tree}, got {tree}")
        return tree_unflatten(self.out_tree, _Operation(_TreeRules(self), values).bind(values))

    def __repr__(self):
        return f"{type(self).__name__}[{self.params}]"

    def __hash__(self):
        return hash((type(self).__name__, tuple(self.params.items()), frozenset(self.effects)))

    def __eq__(self, other):
        return type(self) is type(other) and self.params == other.params and self.effects == other.effects


def _leaves(tree):
    return tree_leaves(tree, lambda x: x is None or isinstance(x, (Zero, SymbolicZero, ad.GradAccum)))


def _prefix(values, avals):
    """One value for each leaf of avals, of which the values are a prefix; None is a leaf."""
    def is_leaf(x):
        return x is None or isinstance(x, (Zero, SymbolicZero))
    values = tuple(values) if isinstance(values, list) else values
    found, structure = tree_flatten(values, is_leaf)
    result = []
    for value, part in zip(found, structure.flatten_up_to(avals), strict=True):
        result += [value] * len(tree_leaves(part))
    return result


class _TreeRules:
    """The rules of a VJPHiPrimitive on the leaves of its trees."""

    def __init__(self, primitive):
        self.primitive, self.name = primitive, type(primitive).__name__

    def result_types(self, _):
        return list(self.primitive.out_avals_flat)

    def evaluate(self, args):
        own = self.primitive
        return _checked_leaves(own, own.expand(*tree_unflatten(own.in_tree, args)))

    def jvp_in_checkpoint(self, primals, tangents):
        """The rule for derivatives of functions that are recomputed: forward mode, where there is a rule for it."""
        return self.jvp(primals, tangents, always_forward=True)

    def jvp(self, primals, tangents, always_forward=False):
        own = self.primitive
        primals, tangents = tree_unflatten(own.in_tree, primals), tree_unflatten(own.in_tree, tangents)
        reverse = "lin" if _lifting.mode() == "linearize" and _overrides(own, "lin") else "vjp_fwd"
        if not _overrides(own, "vjp_fwd") and _overrides(own, "lin"):
            reverse = "lin"
        if _overrides(own, "jvp") and (always_forward or _lifting.mode() == "forward" or not _overrides(own, reverse)):
            results, directions = own.jvp(primals, tangents)
            return _checked_leaves(own, results), _leaves(directions)
        nonzero = tree_unflatten(own.in_tree, [not isinstance(tangent, Zero) for tangent in _leaves(tangents)])
        results, residuals, *more = getattr(own, reverse)(nonzero, *primals)
        results = _checked_leaves(own, results)
        given = [tangent for tangent in _leaves(tangents) if not isinstance(tangent, Zero)]
        kept, tree = tree_flatten(residuals)
        rules = _LinearRules(own, reverse, [not isinstance(tangent, Zero) for tangent in _leaves(tangents)], len(kept), tree)
        values = [*kept, *tree_leaves(primals), *given]
        directions = _Operation(rules, values).bind(values)
        if more:
            wanted = _prefix(more[0], own.out_aval)
            directions = [one if is_nonzero else Zero(kind.to_tangent_aval())
                          for one, is_nonzero, kind in zip(directions, wanted, own.out_avals_flat)]
        return results, directions

    def transpose(self, cotangents, args):
        own = self.primitive
        accumulators = [ad.ValAccum(arg.aval) if isinstance(arg, UndefinedPrimal) else arg for arg in args]
        own.transpose(tree_unflatten(own.out_tree, cotangents), *tree_unflatten(own.in_tree, accumulators))
        return [one.value if isinstance(one, ad.ValAccum) else None for one in accumulators]

    def batch(self, size, axis_name, operation, arrays, dims):
        own = self.primitive
        plain = all(isinstance(kind, ShapedArray) for kind in (*own.in_avals_flat, *own.out_avals_flat))
        if plain and _overrides(own, "batch"):
            from capibara.jax.interpreters.batching import AxisData
            args, axes = tree_unflatten(own.in_tree, arrays), tree_unflatten(own.in_tree, dims)
            results, out_dims = own.batch(AxisData(axis_name, size), args, axes)
            return _checked_leaves(own, results), tree_leaves(out_dims, lambda x: x is None)
        return _batch_arrays(size, axis_name, operation, arrays, dims)


def _overrides(primitive, name):
    return getattr(type(primitive), name) is not getattr(VJPHiPrimitive, name)


def _checked_leaves(primitive, results):
    leaves, tree = tree_flatten(results, lambda x: isinstance(x, Zero))
    if tree != primitive.out_tree:
        raise TypeError(f"{type(primitive).__name__}: expected results of structure {primitive.out_tree}, got {tree}")
    return leaves


class _LinearRules:
    """The derivative of a VJPHiPrimitive at a point: a linear operation on tangents, whose transpose is the rule for cotangents."""

    def __init__(self, primitive, rule, nonzero, kept, tree):
        self.primitive, self.rule, self.nonzero, self.kept, self.tree = primitive, rule, nonzero, kept, tree
        self.name = type(primitive).__name__ + "_linearized"

    def _parts(self, values):
        count = self.kept + len(self.primitive.in_avals_flat)
        return values[:self.kept], values[self.kept:count], values[count:]

    def result_types(self, _):
        return [kind.to_tangent_aval() for kind in self.primitive.out_avals_flat]

    def evaluate(self, values):
        own = self.primitive
        kept, primals, given = self._parts(values)
        given = iter(given)
        tangents = [next(given) if is_nonzero else Zero(kind.to_tangent_aval()) for is_nonzero, kind in zip(self.nonzero, own.in_avals_flat)]
        tangents = tree_unflatten(own.in_tree, tangents)
        if self.rule == "lin":
            directions = own.linearized(tree_unflatten(self.tree, kept), *tangents)
        else:
            _, directions = own.jvp(tree_unflatten(own.in_tree, primals), tangents)
        return [ad.instantiate_zeros(one) for one in _leaves(directions)]

    def jvp(self, primals, tangents):
        from capibara.jax._api import jvp
        own = _Operation(self, primals)
        own.out_types = self.result_types(None)
        arrays = own.arrays_of(primals)
        directions = []
        for (kind, _), tangent in zip(own.entries, tangents):
            directions += _lower(kind.to_tangent_aval(), tangent, self.name)
        out, out_tangents = jvp(own.on_arrays, tuple(arrays), tuple(directions))
        return own.out_raised(out), own.out_raised(out_tangents, [kind.to_tangent_aval() for kind in own.out_types])

    def transpose(self, cotangents, args):
        own = self.primitive
        kept, _, given = self._parts(args)
        accumulators, linear = [], iter(given)
        for is_nonzero, kind in zip(self.nonzero, own.in_avals_flat):
            accumulators.append(ad.ValAccum(kind.to_ct_aval()) if is_nonzero else ad.NullAccum(kind.to_ct_aval()))
        own.vjp_bwd(tree_unflatten(self.tree, kept), tree_unflatten(own.out_tree, cotangents), *tree_unflatten(own.in_tree, accumulators))
        values = [one.value for one, is_nonzero in zip(accumulators, self.nonzero) if is_nonzero]
        return [None] * (self.kept + len(own.in_avals_flat)) + [value for value, _ in zip(values, linear)]

    def batch(self, size, axis_name, operation, arrays, dims):
        return _batch_arrays(size, axis_name, operation, arrays, dims)


# ---- programs

def _is_high(program):
    """True if a program has operations above arrays."""
    return any("operation" in equation.params and isinstance(equation.params["operation"], _Operation) for equation in program.eqns) or any(
        map(_is_high, core.subjaxprs(program)))


def lower_program(program):
    """A closed program as one of operations on arrays alone, in which functions with custom derivatives are inlined."""
    def run(program, consts, args):
        values = dict(zip((*program.constvars, *program.invars), (*consts, *args)))
        for equation in program.eqns:
            given = [atom.val if isinstance(atom, core.Literal) else values[atom] for atom in equation.invars]
            params = equation.params
            if isinstance(params.get("operation"), _Operation):
                results = params["operation"].on_arrays(*given)
            elif str(equation.primitive) in ("custom_jvp_call", "custom_vjp_call"):
                results = run(params["call_jaxpr"].jaxpr, params["call_jaxpr"].consts, given)
            else:
                params = {name: lower_program(value) if isinstance(value, core.ClosedJaxpr) else value for name, value in params.items()}
                results = equation.primitive.bind(*given, **equation.primitive.get_bind_params(params))
            results = results if isinstance(results, (list, tuple)) else [results]
            values.update((var, value) for var, value in zip(equation.outvars, results) if not isinstance(var, DropVar))
        return [atom.val if isinstance(atom, core.Literal) else values[atom] for atom in program.outvars]
    return make_jaxpr(lambda *args: run(program.jaxpr, program.consts, args))(*program.in_avals)


for _class in (core.Jaxpr, core.ClosedJaxpr):
    _class.is_high = property(lambda self: _is_high(getattr(self, "jaxpr", self)), doc=_is_high.__doc__)
_core.Traced.lojax = property(lambda self: types.SimpleNamespace(jaxpr=lower_program(self.jaxpr)),
                              doc="The traced function with operations on arrays alone.")


# ---- boxes

def new_box():
    """A box with None in it."""
    return new_box_p.bind(treedef=_core.tree_structure(None))


def box_get(box):
    """The tree in a box."""
    state = cur_qdd(box)
    return tree_unflatten(state.treedef, box_get_p.bind(box, avals=tuple(state.leaf_avals)))


def box_set(box, val):
    """Puts a tree into a box."""
    leaves, treedef = tree_flatten(val)
    box_set_p.bind(box, *leaves, treedef=treedef)


@dataclass(frozen=True, slots=True)
class BoxTypeState:
    """The types of what is in a box."""

    leaf_avals: tuple
    treedef: Any

    def to_tangent_qdd(self):
        """The state of a box with tangents."""
        return BoxTypeState(tuple(kind.to_tangent_aval() for kind in self.leaf_avals), self.treedef)

    def normalize(self):
        """The state without weak types."""
        return BoxTypeState(tuple(kind.normalize() for kind in self.leaf_avals), self.treedef)


class BoxTy(MutableHiType):
    """The type of boxes."""

    get = aval_method(box_get)
    set = aval_method(box_set)

    def __hash__(self):
        return hash(BoxTy)

    def __eq__(self, other):
        return isinstance(other, BoxTy)

    def __repr__(self):
        return "BoxTy"

    def lo_ty_qdd(self, state):
        return [lo for kind in state.leaf_avals for lo in kind.lo_ty()]

    def _tree(self, state, arrays):
        arrays = iter(arrays)
        return tree_unflatten(state.treedef, [_raise(kind, [next(arrays) for _ in kind.lo_ty()]) for kind in state.leaf_avals])

    def new_from_loval(self, state, *arrays):
        return Box._new(self._tree(state, arrays))

    def read_loval(self, state, box):
        return [array for kind, leaf in zip(state.leaf_avals, tree_leaves(box._val)) for array in kind.lower_val(leaf)]

    def update_from_loval(self, state, box, *arrays):
        box._val = self._tree(state, arrays)

    def to_tangent_aval(self):
        return BoxTy()


class Box:
    """A mutable cell with a tree of arrays or of values above arrays, whose structure and types may change."""

    def __new__(cls, init_val=None):
        box = new_box()
        box_set(box, init_val)
        return box

    @classmethod
    def _new(cls, init_val):
        new = super().__new__(cls)
        new._val = init_val
        return new

    def get(self):
        """The tree in the box."""
        return box_get(self)

    def set(self, val):
        """Puts a tree into the box."""
        box_set(self, val)

    def cur_qdd(self):
        """The types of what is in the box."""
        return self.type_state()

    def type_state(self):
        """The types of what is in the box."""
        leaves, treedef = tree_flatten(self._val)
        return BoxTypeState(tuple(map(typeof, leaves)), treedef)

    @property
    def ty(self):
        return BoxTy()


register_hitype(Box, lambda box: box.ty)


class BoxEffect(Effect):
    """A box is read or written."""


box_effect = BoxEffect()
control_flow_allowed_effects.add_type(BoxEffect)
custom_derivatives_allowed_effects.add_type(BoxEffect)


class _NewBox(HiPrimitive):
    def abstract_eval(self, *, treedef):
        return AvalQDD(BoxTy(), BoxTypeState((), treedef)), {box_effect}

    def to_lojax(self, *, treedef):
        return Box._new(tree_unflatten(treedef, []))


class _BoxSet(HiPrimitive):
    def abstract_eval(self, box_ty, *leaf_avals, treedef):
        box_ty.mutable_qdd.update(BoxTypeState(leaf_avals, treedef))
        return [], {box_effect}

    def to_lojax(self, box, *leaves, treedef):
        box._val = tree_unflatten(treedef, leaves)
        return []


class _BoxGet(HiPrimitive):
    def abstract_eval(self, _, *, avals):
        return avals, {box_effect}

    def to_lojax(self, box, *, avals):
        return tree_leaves(box._val)


new_box_p, box_set_p, box_get_p = _NewBox("new_box"), _BoxSet("box_set"), _BoxGet("box_get")
box_set_p.multiple_results = box_get_p.multiple_results = True


# ---- logs

def log_extend(log, dct):
    """Appends the values of a dict of lists to a log."""
    leaves, treedef = tree_flatten(dct)
    log_extend_p.bind(log, *leaves, treedef=treedef)


def log_append(log, key, val):
    """Appends a value to a log, under a name."""
    log_extend(log, {key: [val]})


def log_read(log):
    """The values of a log: {name: list}."""
    return dict(_lifting.local(log)._dct)


class Log:
    """Values that a program appends under names; inside a traced function it can only be appended to."""

    def __new__(cls):
        return new_log_p.bind()

    @classmethod
    def _new(cls):
        new = super().__new__(cls)
        new._dct = {}
        return new

    def cur_qdd(self):
        """Nothing: the type of a log does not depend on its values."""
        return ()

    append, extend, read = log_append, log_extend, log_read


class LogTy(MutableHiType):
    """The type of logs."""

    is_writer = True
    append, extend, read = aval_method(log_append), aval_method(log_extend), aval_method(log_read)

    def __hash__(self):
        return hash(LogTy)

    def __eq__(self, other):
        return isinstance(other, LogTy)

    def __repr__(self):
        return "Log"

    def to_tangent_aval(self):
        return LogTy()

    def lo_ty_qdd(self, _):
        return []

    def read_loval_in(self, _, __):
        return []

    def read_loval_out(self, _, log):
        return FlatTree.flatten(log._dct)

    def new_from_loval(self, _):
        return Log._new()

    def update_from_loval2(self, _, log, arrays):
        for key, values in arrays.unflatten().items():
            log._dct.setdefault(key, []).extend(values)


register_hitype(Log, lambda _: LogTy())
log_effect = box_effect


class _LogExtend(HiPrimitive):
    def is_effectful(self, _):
        return True

    def abstract_eval(self, *_, treedef):
        return [], {log_effect}

    def to_lojax(self, log, *leaves, treedef):
        for key, values in tree_unflatten(treedef, leaves).items():
            log._dct.setdefault(key, []).extend(values)
        return []


class _NewLog(HiPrimitive):
    def abstract_eval(self):
        return AvalQDD(LogTy(), ()), {log_effect}

    def to_lojax(self):
        return Log._new()


log_extend_p, new_log_p = _LogExtend("log_extend"), _NewLog("new_log")
log_extend_p.multiple_results = True


def new_log():
    """An empty log."""
    return new_log_p.bind()


# ---- functions with custom derivatives

@register_static
@dataclass(frozen=True, slots=True)
class Static:
    """A value that is part of a tree's structure."""

    val: Any


class custom_vjp3:  # noqa: N801
    """A function with rules for its derivative in reverse mode, given by defvjp, as an operation above arrays."""

    def __init__(self, f, nondiff_argnums=(), nondiff_argnames=()):
        from capibara.jax.custom_derivatives import custom_vjp
        self.f = f
        self._own = custom_vjp(f, nondiff_argnums, nondiff_argnames)
        functools.update_wrapper(self, f)

    def defvjp(self, fwd, bwd, *, symbolic_zeros=False, optimize_remat=False):
        """Sets the rules."""
        self._own.defvjp(fwd, bwd, symbolic_zeros, optimize_remat)
        return self

    def __call__(self, *args, **kwargs):
        return self._own(*args, **kwargs)


explain_missing(__name__)
