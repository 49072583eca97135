"""jax.experimental.serialize_executable: compiled functions as bytes.

The bytes contain the program and the placement of its arguments and results; loading compiles it, or reads it from the disk cache.
"""
import pickle
from typing import Any

from capibara import _core
from capibara._modules import explain_missing
from capibara._types import ShapeDtypeStruct
from capibara.jax import tree_util
from capibara.jax._api import jit
from capibara.jax._devices import Backend, devices
from capibara.jax._placing import device_text
from capibara.jax._sharding import SingleDeviceSharding
from capibara.jax.core import eval_jaxpr

_FORMAT = b"capibara executable 1\n"


def serialize(compiled: Any) -> tuple[bytes, Any, Any]:
    """(bytes, tree of the arguments, tree of the results) of a compiled function."""
    if not isinstance(compiled, _core.Compiled):
        raise ValueError(f"Compilation does not support serialization: expected what jit(f).lower(...).compile() gives, got {compiled!r}")
    if compiled._captures_refs:
        raise ValueError("can't serialize with a closed-over mutable array ref")
    info, in_tree = tree_util.tree_flatten(compiled.args_info)
    arguments = [(tuple(one.shape), str(one.dtype), bool(one.donated)) for one in info]
    placed = [[None if isinstance(one, SingleDeviceSharding) and one._device.id == 0 else one for one in tree_util.tree_leaves(side)]
              for side in (compiled.input_shardings, compiled.output_shardings)]
    return _FORMAT + pickle.dumps((compiled.fun_name, compiled._stablehlo, arguments, *placed)), in_tree, compiled.out_tree


def deserialize_and_load(serialized: bytes, in_tree: Any, out_tree: Any, backend: Any = None, execution_devices: Any = None) -> Any:
    """Loads a compiled function from bytes. As in jax, they are a pickle: load only trusted data."""
    platform = backend.platform if isinstance(backend, Backend) else backend
    if execution_devices is not None and any(device.platform != devices(platform)[0].platform for device in execution_devices):
        raise ValueError(f"Execution devices belong to a client other than `backend`. Got backend: {platform} and execution devices: "
                         f"{list(execution_devices)}")
    if not bytes(serialized).startswith(_FORMAT):
        raise ValueError("deserialize_and_load: these bytes were not written by serialize")
    name, text, arguments, in_shardings, out_shardings = pickle.loads(bytes(serialized)[len(_FORMAT):])
    expected = next((one._device_list for one in in_shardings + out_shardings if one is not None), None)
    if execution_devices is not None and expected is not None and set(execution_devices) != set(expected):
        raise ValueError(f"deserialize_and_load: the program was compiled for devices {device_text(expected)}, got execution_devices "
                         f"{device_text(list(execution_devices) or devices()[:1])}")
    program = _core.program_from_stablehlo(text)
    structs = [ShapeDtypeStruct(shape, dtype, sharding=sharding) for (shape, dtype, _), sharding in zip(arguments, in_shardings)]
    args, kwargs = in_tree.unflatten(structs)

    def run(*args, **kwargs):
        return out_tree.unflatten(eval_jaxpr(program.jaxpr, program.consts, *tree_util.tree_leaves((args, kwargs))))

    run.__name__ = name
    placed = expected is not None and all(one is not None for one in out_shardings)
    where = {"out_shardings": out_tree.unflatten(out_shardings)} if placed else {}
    return jit(run, donate_argnums=_donated(args, [flag for _, _, flag in arguments]), **where).lower(*args, **kwargs).compile()


def _donated(args, flags):
    """The positions of arguments all of whose leaves are donated; `flags` has one entry per leaf."""
    left = iter(flags)
    found = [[next(left) for _ in tree_util.tree_leaves(arg)] for arg in args]
    return [i for i, leaves in enumerate(found) if leaves and all(leaves)]


explain_missing(__name__)
