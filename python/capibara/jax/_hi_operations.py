"""Operations on values above arrays: equations on the arrays, which keep the operations' own rules."""
import functools
import types

from capibara import _core, _lifting
from capibara._types import DropVar, UndefinedPrimal, Zero
from capibara.jax import core
from capibara.jax._api import make_jaxpr, typeof, vmap
from capibara.jax._hi_types import AvalMutableQDD, AvalQDD, MutableQuasiDynamicData
from capibara.jax.interpreters import ad


def _short(kind):
    return kind.str_short(short_dtypes=True)


def lower(kind, value, what):
    """The arrays of a value of a type, with a number of entries that fits the type."""
    if isinstance(value, Zero):
        value = kind.vspace_zero()
    arrays = list(kind.lower_val(value))
    expected = len(kind.lo_ty())
    if len(arrays) != expected:
        raise TypeError(f"{what}: {type(kind).__name__}.lower_val must return {expected} arrays, one for each type of lo_ty, "
                        f"got {len(arrays)}")
    return [ad.instantiate_zeros(array) for array in arrays]


def _raise(kind, arrays):
    return kind.raise_val(*arrays)


class Operation:
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
        return [array for (kind, _), arg in zip(self.entries, args) if kind is not None for array in lower(kind, arg, self.name)]

    def raised(self, arrays, types=None):
        """The arguments, from their arrays."""
        arrays, values = iter(arrays), []
        for (kind, count), own in zip(self.entries, types or [kind for kind, _ in self.entries]):
            values.append(count if kind is None else _raise(own, [next(arrays) for _ in range(count)]))
        return values

    def out_arrays(self, values, types=None):
        """The arrays of the results."""
        return [array for kind, value in zip(types or self.out_types, values, strict=True) for array in lower(kind, value, self.name)]

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
        if any(isinstance(arg, _core.Ref) for arg in args):
            return self.rules.evaluate(args)  # reads and writes are effects of the program around it
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
            out_tangents += zeros if isinstance(tangent, Zero) else lower(own, tangent, operation.name)
        return out, out_tangents

    def transpose(cotangents, *arrays, operation):
        given, cotangents = iter(cotangents), []
        for kind in operation.out_types:
            chunk = [next(given) for _ in kind.lo_ty()]
            own = kind.to_ct_aval()
            is_zero = all(isinstance(one, Zero) for one in chunk)
            cotangents.append(Zero(own) if is_zero else _raise(own, [ad.instantiate_zeros(one) for one in chunk]))
        args, linear = [], []
        for (kind, value), chunk in zip(operation.entries, operation.chunks(arrays)):
            linear.append(any(isinstance(one, UndefinedPrimal) for one in chunk))
            args.append(value if kind is None else UndefinedPrimal(kind) if linear[-1] else _raise(kind, chunk))
        results = operation.rules.transpose(cotangents, args)
        out = []
        for (kind, count), is_linear, result in zip(operation.entries, linear, results):
            if kind is not None:
                has = is_linear and result is not None and not isinstance(result, Zero)
                out += lower(kind.to_ct_aval(), result, operation.name) if has else [None] * count
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
        self.operation, self.name = operation, operation.name
        self.dims, self.out_dims, self.size, self.axis_name = dims, out_dims, size, axis_name

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
            if is_linear:
                result = result.sum(0) if dim is None else _core.library_function("numpy", "moveaxis")(result, 0, dim)
            moved.append(result)
        return moved

    def batch(self, size, axis_name, operation, arrays, dims):
        return batch_arrays(size, axis_name, operation, arrays, dims)


def _primitive_rule(name, rule):
    primitive = _primitive(name)
    return {"jvp": primitive.jvp_rule, "transpose": primitive.transpose_rule}[rule]


def batch_arrays(size, axis_name, operation, arrays, dims):
    dims = tuple(dims)
    out_dims = [0 if depends else None for depends in _depend_on(operation, [dim is not None for dim in dims])]
    results = Operation(_Mapped(operation, dims, out_dims, size, axis_name), arrays).bind(arrays)
    return results, out_dims


def _depend_on(operation, mapped):
    """Which arrays of the results depend on arguments that are mapped."""
    kinds = [kind for one, _ in operation.entries if one is not None for kind in one.lo_ty()]
    program = make_jaxpr(operation.on_arrays)(*kinds).jaxpr
    dependent = {var for var, is_mapped in zip(program.invars, mapped) if is_mapped}
    for equation in program.eqns:
        if any(not isinstance(atom, core.Literal) and atom in dependent for atom in equation.invars):
            dependent.update(var for var in equation.outvars if not isinstance(var, DropVar))
    return [not isinstance(atom, core.Literal) and atom in dependent for atom in program.outvars]


def _needed(name, purpose):
    """A method that subclasses define."""
    def method(self, *_args, **_params):
        raise NotImplementedError(f"{self.name}: the operation needs a method '{name}' for {purpose}; define it in {type(self).__name__}")
    method.__name__, method.__doc__ = name, f"Subclasses define it for {purpose}."
    return method


class HiPrimitive(core.Primitive):
    """An operation on values above arrays: subclasses define its types, its meaning by arrays and its derivatives."""

    def __init__(self, name):
        super().__init__(name)

    def _always(self, *_args, **_params):
        """True: the operation is lowered before programs are compiled."""
        return True

    is_high = _always

    def is_effectful(self, _):
        """True if the operation changes a mutable value."""
        return False

    abstract_eval = _needed("abstract_eval", "its type: (types of the results, effects) from the types of the arguments")
    to_lojax = _needed("to_lojax", "its results, computed by operations on arrays")
    jvp = _needed("jvp", "its derivatives: (results, tangents) from the arguments and their tangents")
    transpose = _needed("transpose", "its derivatives in reverse mode: cotangents of the linear arguments from those of the results")

    def bind(self, *args, **params):
        """Applies the operation."""
        results = Operation(_PrimitiveRules(self, params), args).bind(args)
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
        return batch_arrays(size, axis_name, operation, arrays, dims)


def _is_high(program):
    """True if a program has operations above arrays."""
    return any("operation" in equation.params and isinstance(equation.params["operation"], Operation) for equation in program.eqns) or any(
        map(_is_high, core.subjaxprs(program)))


def lower_program(program):
    """A closed program as one of operations on arrays alone, in which functions with custom derivatives are inlined."""
    def run(program, consts, args):
        values = dict(zip((*program.constvars, *program.invars), (*consts, *args)))
        for equation in program.eqns:
            given = [atom.val if isinstance(atom, core.Literal) else values[atom] for atom in equation.invars]
            params = equation.params
            if isinstance(params.get("operation"), Operation):
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
