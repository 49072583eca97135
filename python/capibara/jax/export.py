"""jax.export: exports functions as self-contained, serializable programs; and shapes with symbolic sizes.

A function exported for static sizes is its StableHLO with the types and trees of its arguments and results; it is serialized in jax's
format, so each library reads the other's. Symbolic programs of jax are specialized for every new combination of sizes in a call.
A function exported here for symbolic sizes is retraced for each; its text, which is written when it is serialized, has symbolic sizes.
"""
import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

from capibara import _core
from capibara._dtypes import KeyType, float0
from capibara._errors import InconclusiveDimensionOperation
from capibara._modules import explain_missing
from capibara._symbolic_shapes import SymbolicScope, symbolic_shape
from capibara._symbolic_sizes import SymbolicSize, is_symbolic_dim, size_traced
from capibara._symbolic_tracing import has_symbolic_shape, scope_of, trace_symbolically
from capibara._types import ShapeDtypeStruct
from capibara.jax import _exported_bytes, _exported_shardings, config, custom_vjp, default_backend, device_count, tree_util, vjp
from capibara.jax._api import jit
from capibara.jax._exported_bytes import register_namedtuple_serialization, register_pytree_node_serialization
from capibara.jax._exported_texts import INDEX, check_custom_calls, devices_of, for_platforms, with_index, with_names
from capibara.jax._exported_values import damaged_texts, evaluate_module, with_rules
from capibara.jax._platforms import depends_on_platform, lowering_platform
from capibara.jax._programs import eval_jaxpr
from capibara.jax._symbolic_modules import symbolic_module

__all__ = ["DisabledSafetyCheck", "Exported", "SymbolicScope", "default_export_platform", "deserialize", "export", "is_symbolic_dim",
           "maximum_supported_calling_convention_version", "minimum_supported_calling_convention_version",
           "register_namedtuple_serialization", "register_pytree_node_serialization", "symbolic_args_specs", "symbolic_shape"]

maximum_supported_calling_convention_version = 10
minimum_supported_calling_convention_version = 9


class DisabledSafetyCheck(str):
    """A check that export omits, by name."""

    __slots__ = ()

    @classmethod
    def platform(cls) -> "DisabledSafetyCheck":
        """The check that the program is called on the platform that it was exported for."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> "DisabledSafetyCheck":
        """The check that calls of this target, or with "ALL" of any, are stable."""
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The target of a custom_call check, otherwise None."""
        return self.removeprefix("custom_call:") if self.startswith("custom_call:") else None


def default_export_platform() -> str:
    """The default platform for which functions are exported."""
    return default_backend()


@dataclasses.dataclass(frozen=True)
class Exported:
    """An exported program, with the types and trees of its arguments and results."""

    fun_name: str
    in_tree: Any
    in_avals: tuple
    out_tree: Any
    out_avals: tuple
    platforms: tuple[str, ...]
    disabled_safety_checks: Sequence[DisabledSafetyCheck]
    text: str | None  # None if sizes are symbolic, or an artifact was deserialized
    nr_devices: int = 1
    ordered_effects: tuple = ()
    unordered_effects: tuple = ()
    calling_convention_version: int = maximum_supported_calling_convention_version
    module_kept_var_idx: tuple[int, ...] = ()  # the arguments that the text takes: those that it reads
    artifact: bytes | None = dataclasses.field(default=None, repr=False)  # the program as bytecode, if deserialized
    shardings: tuple | None = dataclasses.field(default=None, repr=False)  # records of arguments and of results
    _devices: tuple | None = dataclasses.field(default=None, repr=False)  # those in the constraints of its functions; None: the first ones
    _call: Callable = dataclasses.field(default=None, repr=False)  # maps flat arguments to flat results
    _get_vjp: Callable | None = dataclasses.field(default=None, repr=False)
    _lower: Callable | None = dataclasses.field(default=None, repr=False)  # maps types of known sizes to text and the arguments read

    @property
    def uses_global_constants(self) -> bool:
        """True if sizes are symbolic, or the program takes a platform index."""
        return self.has_symbolic_sizes() or len(self.platforms) > 1

    def has_symbolic_sizes(self) -> bool:
        """True if the function takes arguments of symbolic sizes."""
        return any(map(has_symbolic_shape, self.in_avals))

    def mlir_module(self, serialized: bool = True) -> str:
        """The program as StableHLO text."""
        return with_names(self._module_text(), _argument_names(self.in_tree), _result_names(self.out_tree), self.module_kept_var_idx)

    def _module_text(self):
        if self._lower is not None:
            return self._symbolic_text
        if self.text is not None:
            return self.text
        with damaged_texts():
            text = _core.stablehlo_text(self.artifact)
        text = _exported_shardings.stated_in(text, self._records(), self.module_kept_var_idx, self.nr_devices)
        return with_index(text, len(self.module_kept_var_idx)) if len(self.platforms) > 1 else text

    def in_shardings_jax(self, mesh: object) -> tuple:
        """The shardings of the arguments on a mesh with the axes of the exported one; None for those left to the compiler."""
        return tuple(_exported_shardings.named(record, mesh) for record in self._records()[0])

    def out_shardings_jax(self, mesh: object) -> tuple:
        """The shardings of the results on a mesh with the axes of the exported one; None for those left to the compiler."""
        return tuple(_exported_shardings.named(record, mesh) for record in self._records()[1])

    @property
    def _in_named_shardings(self):
        return tuple(map(_exported_shardings.named, self._records()[0]))

    @property
    def _out_named_shardings(self):
        return tuple(map(_exported_shardings.named, self._records()[1]))

    def _records(self):
        return self.shardings or ((None,) * len(self.in_avals), (None,) * len(self.out_avals))

    @functools.cached_property
    def _symbolic_text(self):
        return symbolic_module(self._lower, self.in_avals, _argument_names(self.in_tree))

    @property
    def mlir_module_serialized(self) -> bytes:
        """The program as a portable artifact of StableHLO 1.15.0: MLIR's bytecode."""
        if self.artifact is not None:
            return self.artifact
        text = self._module_text()
        return _core.stablehlo_artifact(text, len(self.platforms) > 1 and INDEX not in text)

    def has_vjp(self) -> bool:
        """True if the derivative is known."""
        return self._get_vjp is not None

    def vjp(self) -> "Exported":
        """The reverse-mode derivative: a function of the arguments and a cotangent for each result."""
        if self._get_vjp is None:
            raise ValueError("No VJP is available")
        return self._get_vjp(self)

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """Serializes the program with this many derivatives, for `deserialize` here and in jax."""
        return _exported_bytes.write(self, vjp_order)

    def call(self, *args: object, **kwargs: object) -> object:
        """Calls the program; inside a traced function it becomes part of the trace."""
        leaves, structure = tree_util.tree_flatten((args, kwargs))
        if structure != self.in_tree:
            raise ValueError("The invocation args and kwargs must have the same pytree structure as when the function "
                             f"'{self.fun_name}' was exported: expected {self.in_tree}, got {structure}")
        leaves = [leaf if hasattr(leaf, "aval") else _core.as_array(leaf) for leaf in leaves]
        names = _argument_names(self.in_tree)
        shapes = [tuple(map(size_traced, leaf.shape)) for leaf in leaves]
        for name, leaf, shape, aval in zip(names, leaves, shapes, self.in_avals):
            _check_argument(name, leaf, shape, aval)
        if self.has_symbolic_sizes():
            _solve(names, shapes, self.in_avals)
        current = lowering_platform()
        if current not in self.platforms and DisabledSafetyCheck.platform() not in self.disabled_safety_checks:
            raise ValueError(f"Function '{self.fun_name}' was exported for platforms '{tuple(self.platforms)}' but it is used on "
                             f"'({current!r},)'.")
        # With fewer devices in the process, where jax refuses the call, the program runs on one.
        chosen = _exported_shardings.devices_of_call(leaves) if 1 < self.nr_devices <= device_count() else None
        if chosen is not None:
            if len(chosen) != self.nr_devices:
                raise ValueError(f"Function {self.fun_name} was exported for {self.nr_devices} devices and is called in a context with "
                                 f"{len(chosen)} devices, which is not allowed.")
            leaves = _exported_shardings.place(leaves, self._records()[0], chosen)
        return self.out_tree.unflatten(self._call(*leaves))

    def __str__(self):
        return f"Exported(fun_name={self.fun_name}, ...)"


def _argument_names(in_tree):
    args, kwargs = in_tree.children()
    return _leaf_names("args", args) + _leaf_names("kwargs", kwargs)


def _result_names(out_tree):
    return _leaf_names("result", out_tree)


def _leaf_names(root, structure):
    """The paths of the leaves of a tree; numbers below a registered class whose objects cannot be built without values."""
    try:
        places = tree_util.tree_flatten_with_path(structure.unflatten(range(structure.num_leaves)))[0]
        return [root + tree_util.keystr(path) for path, _ in places]
    except Exception:  # whatever the class raises
        return [f"{root}[<flat index {number}>]" for number in range(structure.num_leaves)]


def _check_argument(name, leaf, shape, aval):
    if len(shape) != len(aval.shape):
        raise ValueError(f"Rank mismatch for {name}: expected {aval.shape} and called with {shape}")
    for axis, (size, expected) in enumerate(zip(shape, aval.shape)):
        if not isinstance(expected, SymbolicSize) and size != expected:
            raise ValueError(f"Shape mismatch for {name}.shape[{axis}] (expected same constant): expected {aval.shape} and called "
                             f"with {shape}")
    if leaf.dtype != aval.dtype:
        raise ValueError(f"Dtype mismatch for {name}: expected {aval.dtype} and called with {leaf.dtype}")


_PAGE = "https://docs.jax.dev/en/latest/export/shape_poly.html#"


def _holds(condition):
    """What a comparison of sizes says; False if it is inconclusive."""
    try:
        return bool(condition())
    except InconclusiveDimensionOperation:
        return False


def _solve(names, shapes, avals, only_solvable=False):
    """Solves for the variables from the arguments' sizes; raises for sizes that contradict the shapes or the constraints, and for
    symbolic ones of which that is not known."""
    waiting = [(f"{name}.shape[{axis}]", size, expression) for name, shape, aval in zip(names, shapes, avals)
               for axis, (size, expression) in enumerate(zip(shape, aval.shape)) if isinstance(expression, SymbolicSize)]
    scope = scope_of([expression for _, _, expression in waiting])
    specifications = " Using the following polymorphic shapes specifications: " + ",".join(
        f"{name}.shape = {aval.shape}" for name, aval in zip(names, avals) if has_symbolic_shape(aval)) + "."
    sizes, solved, checks = {}, " Obtained dimension variables: ", []

    def check(holds, words):
        checks.append((holds, f"Input shapes do not match the polymorphic shapes specification. {words}{specifications}{solved}. "
                              f"Please see {_PAGE}shape-assertion-errors for more details."))
    while waiting:
        left = []
        for where, size, expression in waiting:
            unknown = expression.variables() - set(sizes)
            factor, rest = _linear(expression, sizes, unknown) if len(unknown) == 1 else (0, 0)
            if factor:
                name, difference = unknown.pop(), size - rest
                sizes[name], remainder = divmod(difference, abs(factor))
                if factor < 0:
                    sizes[name] = -sizes[name]
                check(remainder == 0, f"Division had remainder {remainder} when computing the value of '{name}'.")
                solved += f"'{name}' = {sizes[name]} from specification '{expression}' for dimension {where} (= {size}), "
                check(_holds(lambda value=sizes[name]: value >= 1), f"Expected value >= 1 for dimension variable '{name}'.")
            elif unknown:
                left.append((where, size, expression))
            else:
                check(expression.value(sizes) == size, f"Found inconsistency between dimension size {where} (= {size}) and the "
                                                       f"specification '{expression}' (= {expression.value(sizes)}).")
        if len(left) == len(waiting):
            unsolved = set().union(*(expression.variables() for *_, expression in left)) - set(sizes)
            raise ValueError(f"Cannot solve for values of dimension variables {unsolved}. We can only solve linear uni-variate constraints."
                             f"{specifications} Unprocessed specifications: "
                             + ", ".join(f"'{expression}' for dimension size {where}" for where, _, expression in left)
                             + f". Please see {_PAGE}dimension-variables-must-be-solvable-from-the-input-shapes for more details.")
        waiting = left
    if only_solvable:
        return sizes
    for holds, message in checks:
        if not holds:
            raise ValueError(message)
    scope.check(sizes)
    return sizes


def _linear(expression, sizes, unknown):
    """The factor of the one unknown variable and the value of the other terms; factor 0 if the expression is not linear in it."""
    name, factor, rest = next(iter(unknown)), 0, 0
    for term, count in expression.terms:
        part = SymbolicSize(((term, count),), expression.scope)
        if name not in part.variables():
            rest += part.value(sizes)
        elif term == ((name, 1),):
            factor = count
        else:
            return 0, 0
    return factor, rest


def symbolic_args_specs(args: object, shapes_specs: object, constraints: Sequence[str] = (), scope: object = None) -> object:
    """The types of arguments, with shapes given as text: one for all, or a tree prefix of the arguments."""
    if scope is not None and constraints:
        raise ValueError("Cannot use both `scope` and `constraints`")
    scope = SymbolicScope(constraints) if scope is None else scope
    leaves, structure = tree_util.tree_flatten(args)
    if isinstance(args, tuple) and isinstance(shapes_specs, list):
        shapes_specs = tuple(shapes_specs)
    texts = tree_util.broadcast_prefix(shapes_specs, args, is_leaf=lambda x: x is None)
    types = [leaf if isinstance(leaf, ShapeDtypeStruct) else ShapeDtypeStruct.like(leaf) for leaf in leaves]
    return structure.unflatten([ShapeDtypeStruct(symbolic_shape(text, like=kind.shape, scope=scope), kind.dtype)
                                for text, kind in zip(texts, types)])


def export(fun_jit, *, platforms: Sequence[str] | None = None, disabled_checks: Sequence[DisabledSafetyCheck] = (),
           _override_lowering_rules: Sequence[tuple[Any, Callable]] | None = None) -> Callable[..., Exported]:
    """A function from argument types to the exported program of a jitted function.

    `_override_lowering_rules`, private as in jax: pairs of a primitive and the rule that lowers it in this program, as those of
    `jax.interpreters.mlir.register_lowering`.
    """
    if isinstance(fun_jit, _core.LibraryFunction):
        fun_jit = jit(fun_jit)  # functions of the library are compiled whole in jax
    if not hasattr(fun_jit, "trace"):
        raise ValueError(f"Function to be exported must be the result of `jit` but is: {fun_jit}")
    if platforms is not None and (isinstance(platforms, str) or not all(isinstance(name, str) for name in platforms)):
        raise ValueError(f"platforms must be a sequence of strings, got {platforms!r}")
    platforms = tuple(platforms or (default_export_platform(),))

    def do_export(*args, **kwargs):
        function = fun_jit if not _override_lowering_rules else with_rules(fun_jit, args, kwargs, dict(_override_lowering_rules))
        return _exported(function, args, kwargs, platforms, tuple(disabled_checks), _requested_convention())

    return do_export


def _requested_convention():
    """The calling convention of jax_export_calling_convention_version."""
    version, oldest, newest = (config.jax_export_calling_convention_version, minimum_supported_calling_convention_version,
                               maximum_supported_calling_convention_version)
    if not oldest <= version <= newest:
        raise ValueError(f"The requested export calling convention version {version} is outside the range of supported versions "
                         f"[{oldest}..{newest}]")
    return version


_DONATING = ("cpu", "cuda", "rocm", "tpu", "neuron")


def _check_donation(traced, platforms):
    """Raises if arguments are donated and only some of the platforms support that."""
    donating = [platform for platform in platforms if platform in _DONATING]
    if traced.donate_argnums and donating and len(donating) != len(platforms):
        raise NotImplementedError("In multi-platform lowering either all or no lowering platforms should support donation. Lowering for "
                                  f"{platforms} of which only {donating} support donation")


def _check_scope(function, avals, names):
    """Raises if sizes are of several scopes, or a constraint is on a variable that no argument has."""
    first, known = None, set()
    for aval, name in zip(avals, names):
        for size in aval.shape:
            if not isinstance(size, SymbolicSize):
                continue
            first = (size, name) if first is None else first
            known |= size.variables()
            if size.scope is not first[0].scope:
                raise ValueError(f"Invalid mixing of symbolic scopes when exporting {function}.\nExpected current (from {first[1]}) scope "
                                 f"{first[0].scope}\nand found for '{size}' ({name}) scope {size.scope}")
    for text, condition, _ in first[0].scope.conditions:
        missing = condition.variables() - known
        if missing:
            raise ValueError(f"Encountered dimension variable '{min(missing)}' in the constraint {text}, which is in the shape of no "
                             f"argument of {function}; the variables are {sorted(known)}")


def _canonical(leaf):
    """The type of an argument, in 32 bits unless 64 are enabled."""
    kind = leaf if has_symbolic_shape(leaf) else ShapeDtypeStruct.like(leaf)
    narrow = kind.dtype if isinstance(kind.dtype, KeyType) or kind.dtype == float0 else _core.canonical_dtype(kind.dtype)
    return kind if narrow == kind.dtype else ShapeDtypeStruct(kind.shape, narrow, weak_type=getattr(kind, "weak_type", False))


def _exported(function, args, kwargs, platforms, disabled, convention):
    leaves, structure = _core.tree_flatten((args, kwargs))
    name = getattr(function, "__name__", "unknown")
    if any(map(has_symbolic_shape, leaves)):
        return _exported_symbolically(function, leaves, structure, name, platforms, disabled, convention)
    programs = {}

    def lowered():
        traced = function.trace(*args, **kwargs)
        programs[lowering_platform()] = traced.jaxpr
        stage = traced.lower()
        return stage.as_text(), stage._kept_var_idx
    several = platforms != (default_export_platform(),) and depends_on_platform(lowered)
    traced = function.trace(*args, **kwargs)
    _check_donation(traced, platforms)
    text, kept = for_platforms(lowered, platforms) if several else lowered()
    check_custom_calls(text, disabled)
    in_avals, out_avals = tuple(_core.tree_flatten(traced.in_avals)[0]), tuple(traced.jaxpr.out_avals)
    return from_text(name, traced.in_tree, out_tree=traced.out_tree, text=text, platforms=platforms, disabled=disabled,
                     in_avals=in_avals, out_avals=out_avals, kept=kept, programs=programs if several else {None: traced.jaxpr},
                     get_vjp=_derivative, convention=convention,
                     shardings=_exported_shardings.shardings_of(text, kept, in_avals, out_avals, leaves),
                     devices=_exported_shardings.devices_in(traced.jaxpr, leaves, devices_of(text)))


def _exported_symbolically(function, leaves, structure, name, platforms, disabled, convention):
    avals = tuple(map(_canonical, leaves))
    _check_scope(name, avals, _argument_names(structure))
    _solve(_argument_names(structure), [aval.shape for aval in avals], avals, only_solvable=True)
    first = {}

    def out_types(leaves):
        args, kwargs = structure.unflatten(leaves)
        traced = function.trace(*args, **kwargs)
        if not first:
            _check_donation(traced, platforms)
            first["program"] = traced.jaxpr
            stage = traced.lower()
            first.update(text=stage.as_text(), kept=stage._kept_var_idx)
            check_custom_calls(first["text"], disabled)
        return traced.out_info

    outs, out_tree = _core.tree_flatten(trace_symbolically(out_types, avals))
    shardings, count = _exported_shardings.shardings_of(first["text"], first["kept"], avals, outs, leaves), devices_of(first["text"])

    def call(*values):
        return _core.tree_flatten(_called(function, structure, values))[0]

    def lower(types):
        def lowered():
            stage = function.trace(*args, **kwargs).lower()
            text = stage.as_text()
            # Artifacts have no operations of CHLO; what stands for them is written for known sizes.
            return _core.stablehlo_text(_core.stablehlo_artifact(text)) if "chlo." in text else text, stage._kept_var_idx
        args, kwargs = structure.unflatten(types)
        return for_platforms(lowered, platforms)
    return Exported(name, structure, avals, out_tree, tuple(outs), platforms, disabled, None, count,
                    calling_convention_version=convention, shardings=shardings, _call=call, _get_vjp=_derivative, _lower=lower,
                    _devices=_exported_shardings.devices_in(first["program"], leaves, count),
                    module_kept_var_idx=tuple(range(len(avals))))


def _called(function, structure, leaves):
    args, kwargs = structure.unflatten(leaves)
    return function(*args, **kwargs)


def from_text(name, in_tree, in_avals, out_tree, out_avals, text, platforms, disabled, kept, programs=None, get_vjp=None, artifact=None,
              nr_devices=None, convention=maximum_supported_calling_convention_version, shardings=None, effects=((), ()), devices=None):
    """An exported program of static sizes, as text or as an artifact. `programs`: what is run on each platform, or {None: on all}; without
    it, what is read. The derivative is that of these programs, or the one serialized with the file."""
    nr_devices = devices_of(text) if nr_devices is None else nr_devices
    exported = Exported(name, in_tree, in_avals, out_tree, out_avals, platforms, disabled, text, nr_devices, *effects, convention,
                        kept, artifact, shardings, devices, _get_vjp=get_vjp)
    if programs is None:
        module = text if artifact is None else artifact
        evaluate = evaluate_module(module, in_avals, out_avals, kept, platforms, exported._records(), nr_devices)
    else:
        def run(*values):
            program = programs[None] if None in programs else programs.get(lowering_platform(), programs.get(platforms[0]))
            return eval_jaxpr(program.jaxpr, program.consts, *values)
        evaluate = jit(run)
    call = evaluate if get_vjp is _derivative else _with_derivative(exported, evaluate)
    object.__setattr__(exported, "_call", call)
    return exported


def _tangent_dtype(aval):
    return _core.ShapedArray((), aval.dtype).to_tangent_aval().dtype


def _with_derivative(exported, evaluate):
    """A callable whose reverse-mode derivative is the exported one; if none was serialized, it is not differentiable."""
    call = custom_vjp(lambda *values: evaluate(*values))
    differentiable = [_tangent_dtype(aval) == aval.dtype for aval in exported.in_avals]

    def forward(*values):
        if not exported.has_vjp():
            raise ValueError("No VJP is available")
        return evaluate(*values), values

    def backward(values, cotangents):
        results = exported.vjp().call(*values, *cotangents)
        return tuple(result if has_tangent else None for result, has_tangent in zip(results, differentiable))
    call.defvjp(forward, backward)
    return call


def _derivative(primal):
    """The exported reverse-mode derivative of an exported function: of its flat arguments and the cotangents of its flat results."""

    def fun_vjp_jax(*values):
        count = len(primal.in_avals)
        pullback = vjp(lambda *values: primal._call(*values), *values[:count])[1]
        return tuple(pullback(list(values[count:])))

    avals = [ShapeDtypeStruct(aval.shape, aval.dtype) for aval in primal.in_avals]
    avals += [ShapeDtypeStruct(aval.shape, _tangent_dtype(aval)) for aval in primal.out_avals]
    ins, outs = ([_exported_shardings.on_devices(record, primal._devices) for record in records] for records in primal._records())
    shardings = {"in_shardings": tuple(ins + outs), "out_shardings": tuple(ins)} if primal.nr_devices > 1 else {}
    return export(jit(fun_vjp_jax, **shardings), platforms=primal.platforms, disabled_checks=primal.disabled_safety_checks)(*avals)


def deserialize(blob: bytes | bytearray) -> Exported:
    """Deserializes an exported program, serialized here or by jax."""
    return _exported_bytes.read(blob, from_text)


explain_missing(__name__)
