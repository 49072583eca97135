"""Compiled functions as bytes: the program and how its arguments and results are placed; loading compiles it again."""
import pickle
from typing import Any

from capibara import _core
from capibara._types import ShapeDtypeStruct
from capibara.jax import jit
from capibara.jax._devices import devices
from capibara.jax._placing import device_text
from capibara.jax._sharding import SingleDeviceSharding
from capibara.jax.core import eval_jaxpr

_MARK = "capibara executable 1"


def serialize(compiled: Any) -> tuple[bytes, Any, Any]:
    """The bytes of a compiled function, and the trees of its arguments and results, which `deserialize_and_load` takes."""
    if compiled._captures_refs:
        raise ValueError("can't serialize with a closed-over mutable array ref")
    text = compiled._stablehlo
    types = [(aval.shape, str(aval.dtype)) for aval in _core.tree_leaves(compiled.in_avals)]
    placed = [_core.tree_leaves(tree) for tree in (compiled.input_shardings, compiled.output_shardings)]
    kept = (_MARK, text, types, *([None if isinstance(one, SingleDeviceSharding) and one._device.id == 0 else one for one in side]
                                  for side in placed))
    return pickle.dumps(kept), compiled.in_tree, compiled.out_tree


def deserialize_and_load(serialized: bytes, in_tree: Any, out_tree: Any, backend: Any = None, execution_devices: Any = None) -> Any:
    """The compiled function that `serialize` made the bytes of. They are a pickle: load only what you trust."""
    mark, text, types, in_shardings, out_shardings = pickle.loads(serialized)
    if mark != _MARK:
        raise ValueError(f"deserialize_and_load: these bytes begin with {mark!r}, not {_MARK!r}")
    wanted = next((one._device_list for one in in_shardings + out_shardings if one is not None), None)
    if execution_devices is not None and wanted is not None and set(execution_devices) != set(wanted):
        raise ValueError(f"deserialize_and_load: the program was compiled for devices {device_text(wanted)}, got execution_devices "
                         f"{device_text(list(execution_devices) or devices()[:1])}")
    program = _core.program_from_stablehlo(text)

    def call(*args, **kwargs):
        return out_tree.unflatten(eval_jaxpr(program.jaxpr, program.consts, *_core.tree_leaves((args, kwargs))))
    structs = [ShapeDtypeStruct(shape, _core.dtype_of(dtype), sharding=sharding) for (shape, dtype), sharding in zip(types, in_shardings)]
    args, kwargs = in_tree.unflatten(structs)
    placed = wanted is not None and all(one is not None for one in out_shardings)
    jitted = jit(call, out_shardings=out_tree.unflatten(out_shardings)) if placed else jit(call)
    return jitted.lower(*args, **kwargs).compile()
