"""jax.ffi: calls foreign functions from programs, by XLA's FFI, on the native backends."""
import ctypes
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from capibara import _core
from capibara._dtypes import float0
from capibara.jax import numpy as jnp
from capibara.jax._programs import eval_jaxpr

__all__ = ["build_ffi_lowering_function", "ffi_call", "ffi_lowering", "include_dir", "pycapsule", "register_ffi_target",
           "register_ffi_target_as_batch_partitionable", "register_ffi_type", "register_ffi_type_id"]

_STAGES = ("instantiate", "prepare", "initialize", "execute")
ELEMENTS = {"bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "ui8", "uint16": "ui16",
             "uint32": "ui32", "uint64": "ui64", "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
             "int2": "i2", "int4": "i4", "uint2": "ui2", "uint4": "ui4", "float4_e2m1fn": "f4E2M1FN", "float8_e3m4": "f8E3M4",
             "float8_e4m3": "f8E4M3", "float8_e4m3b11fnuz": "f8E4M3B11FNUZ", "float8_e4m3fn": "f8E4M3FN",
             "float8_e4m3fnuz": "f8E4M3FNUZ", "float8_e5m2": "f8E5M2", "float8_e5m2fnuz": "f8E5M2FNUZ",
             "float8_e8m0fnu": "f8E8M0FNU"}


# Own prototypes: those of ctypes.pythonapi are shared by the whole process.
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", ctypes.pythonapi))
_name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


def pycapsule(funcptr: object) -> object:
    """A capsule around a ctypes function, or around an address."""
    return _new_capsule(funcptr if isinstance(funcptr, int) else ctypes.cast(funcptr, ctypes.c_void_p), None, None)


def _address(capsule, function, argument):
    try:
        return _pointer_of(capsule, _name_of(capsule))
    except (ValueError, TypeError):
        raise TypeError(f"{function}: {argument} must be a PyCapsule, got {type(capsule).__name__}; see jax.ffi.pycapsule") from None


def _check_platform(function, platform):
    if platform not in ("cpu", "Host"):
        raise NotImplementedError(f"{function}: platform must be 'cpu', got {platform!r}; handlers for GPUs belong to the plugin's XLA")


def register_ffi_target(name: str, fn: object, platform: str = "cpu", api_version: int = 1, **kwargs: object) -> None:
    """Registers a handler under a name: a capsule, or a dict of capsules by stage (instantiate, prepare, initialize, execute)."""
    _check_platform("register_ffi_target", platform)
    if api_version != 1:
        raise NotImplementedError(f"register_ffi_target: api_version must be 1, of typed handlers, got {api_version}")
    if kwargs:
        raise TypeError(f"register_ffi_target: unexpected arguments {', '.join(sorted(kwargs))}")
    stages = fn if isinstance(fn, dict) else {"execute": fn}
    unknown = sorted(set(stages) - set(_STAGES))
    if unknown:
        raise ValueError(f"register_ffi_target: there is no stage {unknown[0]!r}; stages are {', '.join(_STAGES)}")
    addresses = [_address(stages[stage], "register_ffi_target", stage) if stage in stages else 0 for stage in _STAGES]
    _core.register_ffi_target(name, addresses)


def register_ffi_type(name: str, type_registration: dict[str, object], platform: str = "cpu") -> None:
    """Registers a type of handler state: a dict of capsules, type_id and, for types with a deleter, type_info."""
    _check_platform("register_ffi_type", platform)
    if not isinstance(type_registration, dict) or "type_id" not in type_registration:
        raise ValueError(f"register_ffi_type: expected a dict with 'type_id', got {type_registration!r}")
    number = ctypes.c_int64.from_address(_address(type_registration["type_id"], "register_ffi_type", "type_id"))
    deleter = 0
    if type_registration.get("type_info") is not None:  # its size, an extension, and the deleter
        info = _address(type_registration["type_info"], "register_ffi_type", "type_info")
        deleter = ctypes.c_void_p.from_address(info + 2 * ctypes.sizeof(ctypes.c_void_p)).value or 0
    number.value = _core.register_ffi_type(name, number.value, deleter)


def register_ffi_type_id(name: str, obj: object, platform: str = "cpu") -> None:
    """Raises, as in jax, which has register_ffi_type instead."""
    raise ValueError(f"register_ffi_type_id({name!r}, {obj!r}, {platform!r}): jax has register_ffi_type instead since 0.8.2")


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Refused: programs of several devices run as one program on whole arrays here."""
    raise NotImplementedError(f"register_ffi_target_as_batch_partitionable: {name!r} is called with whole arrays here; use shard_map")


def include_dir() -> str:
    """The folder of XLA's headers for handlers, which are part of jaxlib."""
    import importlib.util
    spec = importlib.util.find_spec("jaxlib")
    for folder in spec.submodule_search_locations or () if spec else ():
        path = os.path.join(folder, "include")
        if os.path.isdir(path):
            return path
    raise RuntimeError("include_dir: the headers for handlers are those of jaxlib, which is not installed; pip install jaxlib")


class _Results:
    """The results of a call in a lowering rule."""

    def __init__(self, results):
        self.results = results
        self.result = results[0] if len(results) == 1 else None


def build_ffi_lowering_function(call_target_name: str, *, operand_layouts: Sequence[Sequence[int] | None] | None = None,
                                result_layouts: Sequence[Sequence[int] | None] | None = None,
                                backend_config: Mapping[str, object] | str | None = None, skip_ffi_layout_processing: bool = False,
                                **lowering_args: object) -> Callable[..., Any]:
    """A function of a lowering rule's context, operands and attributes that calls a handler; its result has `.results`.

    Layouts that are tuples begin with the dimension that varies fastest. Results have the types of the context's avals_out.
    """
    if backend_config is not None and not isinstance(backend_config, dict):
        raise ValueError(f"ffi_lowering: backend_config must be a dict, got {type(backend_config).__name__}")
    options = dict(lowering_args)
    effect, aliases = options.pop("has_side_effect", False), options.pop("operand_output_aliases", None)
    if options.pop("api_version", 4) != 4:
        raise NotImplementedError("ffi_lowering: only typed handlers are called, with api_version=4")
    if options:
        raise NotImplementedError(f"ffi_lowering: {', '.join(sorted(options))} belong to operations of MLIR, of which there are none here")
    if skip_ffi_layout_processing and (operand_layouts is not None or result_layouts is not None):
        raise NotImplementedError("ffi_lowering: skip_ffi_layout_processing with layouts; leave one of them out")

    def major_to_minor(layouts):
        return None if layouts is None else [layout if layout is None or hasattr(layout, "major_to_minor") else tuple(layout)[::-1]
                                             for layout in layouts]

    def lowering(ctx, *operands, **params):
        call = ffi_call(call_target_name, tuple(ctx.avals_out), has_side_effect=effect, input_output_aliases=aliases,
                        input_layouts=major_to_minor(operand_layouts), output_layouts=major_to_minor(result_layouts))
        return _Results(list(call(*operands, **{**(backend_config or {}), **params})))

    return lowering


def ffi_lowering(call_target_name: str, *, operand_layouts: Sequence[Sequence[int] | None] | None = None,
                 result_layouts: Sequence[Sequence[int] | None] | None = None, backend_config: Mapping[str, object] | str | None = None,
                 skip_ffi_layout_processing: bool = False, **lowering_args: object) -> Callable[..., Any]:
    """A lowering rule, for jax.interpreters.mlir.register_lowering, that calls a handler; see build_ffi_lowering_function."""
    lowering = build_ffi_lowering_function(
        call_target_name, operand_layouts=operand_layouts, result_layouts=result_layouts, backend_config=backend_config,
        skip_ffi_layout_processing=skip_ffi_layout_processing, **lowering_args)
    return lambda ctx, *operands, **params: lowering(ctx, *operands, **params).results


def _text(value):
    plain = [c if c.isprintable() and c not in '"\\' and ord(c) < 128 else "".join(f"\\{b:02X}" for b in c.encode()) for c in value]
    return f'"{"".join(plain)}"'


def _number(value, element):
    if element == "i1":
        return "true" if value else "false"
    if element.startswith(("f", "bf")):
        value = float(value)
        if not math.isfinite(value):  # bits, as MLIR writes them
            if element.startswith(("f4", "f8")):
                raise TypeError(f"ffi_call: an attribute of type {element} must be finite, got {value}")
            bits = np.asarray(value, {"f64": np.float64, "f32": np.float32, "f16": np.float16}.get(element, np.float32))
            size = bits.dtype.itemsize
            pattern = int(bits.view({8: np.uint64, 4: np.uint32, 2: np.uint16}[size]))
            return f"0x{pattern >> 16:04X}" if element == "bf16" else f"0x{pattern:0{2 * size}X}"
        short = f"{value:.6e}"
        return short if float(short) == value else f"{value:.17e}"
    return str(int(value))


def _numbers(array, element):
    """An array's numbers, nested as in MLIR; empty if there are none."""
    if array.ndim == 0:
        return _number(array[()], element)
    return f"[{', '.join(_numbers(part, element) for part in array)}]" if array.size else ""


def _attribute(name, value):
    """An attribute in StableHLO syntax."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        inner = {key: _attribute(f"{name}.{key}" if name else key, item) for key, item in sorted(value.items())}
        names = [key if re.fullmatch(r"[A-Za-z_][\w$.]*", key) else _text(key) for key in inner]
        return "{" + ", ".join(f"{key} = {text}" for key, text in zip(names, inner.values())) + "}"
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(_attribute(name, item) for item in value) + "]"
    if isinstance(value, int):
        return f"{value} : i64"
    if isinstance(value, float):
        return f"{_number(value, 'f64')} : f64"
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype == float0:
        value = np.zeros(value.shape, bool)
    # Numbers of ml_dtypes have the dtype alone in common with NumPy's.
    if hasattr(value, "dtype") and not isinstance(value, _core.Array) and getattr(value.dtype, "name", None) in ELEMENTS:
        element = ELEMENTS[value.dtype.name]
        if not isinstance(value, np.ndarray):
            return f"{_number(value, element)} : {element}"
        shape = "".join(f"{size}x" for size in value.shape)
        return f"dense<{_numbers(value, element)}> : tensor<{shape}{element}>"
    said = f"ffi_call: attribute{f' {name!r}' if name else ''} must be a number, a text, an array or a dict of them"
    raise TypeError(f"{said}, got {type(value).__name__}")


def _layout(layout, rank):
    """A minor-to-major order from a layout in jax's form: major-to-minor, a Layout, or None."""
    if layout is None:
        return list(range(rank))[::-1]
    order = getattr(layout, "major_to_minor", layout)
    return [int(dim) for dim in order][::-1]


def ffi_call(target_name: str, result_shape_dtypes: object, *, has_side_effect: bool = False, vmap_method: str | None = None,
             input_layouts: Sequence[Sequence[int] | None] | None = None, output_layouts: object = None,
             input_output_aliases: Mapping[int, int] | None = None, custom_call_api_version: int = 4,
             legacy_backend_config: Mapping[str, object] | str | None = None) -> Callable[..., Any]:
    """A function that calls a registered handler: arrays are its operands, keywords its attributes."""
    methods = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized", None)
    if vmap_method not in methods:
        raise ValueError(f"vmap_method must be on of the allowed methods {methods}, but got: {vmap_method}")
    legacy = custom_call_api_version < 4
    if not legacy and legacy_backend_config is not None:
        raise ValueError("The use of the legacy_backend_config parameter requires custom_call_api_version < 4; got "
                         f"{custom_call_api_version}.")
    if legacy and (vmap_method is not None or input_layouts is not None or output_layouts is not None or input_output_aliases):
        raise NotImplementedError("ffi_call: vmap_method, layouts and aliases need custom_call_api_version=4, got "
                                  f"{custom_call_api_version}")
    many = isinstance(result_shape_dtypes, (tuple, list))
    types = list(result_shape_dtypes) if many else [result_shape_dtypes]
    for position, kind in enumerate(types):
        if not hasattr(kind, "shape") or not hasattr(kind, "dtype"):
            raise ValueError("All elements of result_shape_dtypes must have 'shape' and 'dtype' attributes. "
                             f"Got {kind} at position {position}.")
    aliases = {int(key): int(value) for key, value in (input_output_aliases or {}).items()}

    def call(*args, **kwargs):
        for name, value in kwargs.items():
            if isinstance(value, _core.Array):
                raise TypeError(f"Non-hashable keyword argument to ffi_call {name}: {value}")
        operands = [jnp.asarray(arg) for arg in args]
        if legacy:
            if kwargs:
                raise ValueError("The use of ffi_call attributes requires a custom call API version of at least 4; got "
                                 f"api_version={custom_call_api_version}.")
            results = _legacy_call(target_name, types, operands, has_side_effect, custom_call_api_version, legacy_backend_config)
            return tuple(results) if many else results[0]
        if input_layouts is not None and len(input_layouts) != len(operands):
            raise ValueError(f"The number of input arguments ({len(operands)}) must equal the number of input layouts "
                             f"({len(input_layouts)}).")
        ins = [_layout(layout, operand.ndim) for layout, operand in zip(input_layouts or [None] * len(operands), operands)]
        given = output_layouts if many and output_layouts is not None else [output_layouts] * len(types)
        if len(given) != len(types):
            raise ValueError(f"The number of outputs ({len(types)}) must equal the number of output layouts ({len(given)}).")
        outs = [_layout(layout, len(result.shape)) for layout, result in zip(given, types)]
        _check_aliases(aliases, operands, types, ins, outs)
        results = _core.ffi_call(target_name, types, operands, _attribute("", kwargs), has_side_effect, vmap_method or "", ins, outs,
                                 aliases)
        return tuple(results) if many else results[0]

    return call


def _legacy_call(target_name, types, operands, has_side_effect, version, config):
    """A call of a handler of an earlier interface, which plugins may have: programs of the native backends have none."""
    def text(kind):
        name = np.dtype(kind.dtype).name
        if name not in ELEMENTS:
            raise TypeError(f"ffi_call: custom_call_api_version={version} takes no arrays of type {name}")
        return "tensor<" + "".join(f"{size}x" for size in kind.shape) + ELEMENTS[name] + ">"
    ins, outs = [text(operand) for operand in operands], [text(kind) for kind in types]
    values = [f"%arg{i}" for i in range(len(ins))]
    results = [f"%0#{i}" if len(outs) > 1 else "%0" for i in range(len(outs))]
    made = "" if not outs else f"%0{f':{len(outs)}' if len(outs) > 1 else ''} = "
    module = _core.program_from_stablehlo(f"""module {{
  func.func public @main({', '.join(f'{value}: {kind}' for value, kind in zip(values, ins))}) -> ({', '.join(outs)}) {{
    {made}"stablehlo.custom_call"({', '.join(values)}) {{call_target_name = {_text(target_name)}, api_version = {int(version)} : i32, \
backend_config = {_text(config or '')}, has_side_effect = {str(bool(has_side_effect)).lower()}}} : ({', '.join(ins)}) -> \
({', '.join(outs)})
    return {', '.join(results)}{' : ' if outs else ''}{', '.join(outs)}
  }}
}}
""")
    return eval_jaxpr(module.jaxpr, module.consts, *operands)


def _check_aliases(aliases, operands, types, input_layouts, output_layouts):
    for source, target in aliases.items():
        said = f"input_output_aliases contains the mapping '{source}:{target}'"
        if not 0 <= source < len(operands):
            raise ValueError(f"{said} with input index {source} outside the range [0, {len(operands)}).")
        if not 0 <= target < len(types):
            raise ValueError(f"{said} with output index {target} outside the range [0, {len(types)}).")
        given, expected = operands[source], types[target]
        if given.shape != tuple(expected.shape) or given.dtype != expected.dtype:
            raise ValueError(f"{said} referring to an input with abstract value {given.dtype}{list(given.shape)} and an output with a "
                             f"different abstract value {np.dtype(expected.dtype)}{list(expected.shape)}.")
        if input_layouts[source] != output_layouts[target]:
            raise ValueError(f"{said} referring to an input with layout {input_layouts[source]} and an output with a different layout "
                             f"{output_layouts[target]}.")
