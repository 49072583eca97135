"""jax.experimental.serialize_executable: compiled functions as bytes.

The bytes hold the program and the types of its arguments; loading compiles it, which the disk cache makes a read where it can.
"""
import json

from capibara import _core
from capibara._modules import explain_missing
from capibara._types import ShapeDtypeStruct
from capibara.jax import tree_util
from capibara.jax._api import jit
from capibara.jax._devices import Backend, devices
from capibara.jax.core import eval_jaxpr

_FORMAT = "capibara executable 1"


def serialize(compiled):
    """(bytes, tree of the arguments, tree of the results) of a compiled function."""
    if not isinstance(compiled, _core.Compiled):
        raise ValueError(f"Compilation does not support serialization: expected what jit(f).lower(...).compile() gives, got {compiled!r}")
    shardings = tree_util.tree_leaves((compiled.input_shardings, compiled.output_shardings))
    placed = [sharding for sharding in shardings if sharding.num_devices > 1]
    if placed:
        raise NotImplementedError(f"serialize: {compiled.fun_name} runs on several devices ({placed[0]}); export it with jax.export")
    info, in_tree = tree_util.tree_flatten(compiled.args_info)
    arguments = [[list(one.shape), str(one.dtype), bool(one.donated)] for one in info]
    payload = {"format": _FORMAT, "name": compiled.fun_name, "arguments": arguments, "program": compiled._stablehlo}
    return json.dumps(payload).encode(), in_tree, compiled.out_tree


def deserialize_and_load(serialized, in_tree, out_tree, backend=None, execution_devices=None):
    """The compiled function of these bytes."""
    platform = backend.platform if isinstance(backend, Backend) else backend
    if execution_devices is not None and any(device.platform != devices(platform)[0].platform for device in execution_devices):
        raise ValueError(f"Execution devices belong to a client other than `backend`. Got backend: {platform} and execution devices: "
                         f"{list(execution_devices)}")
    try:
        payload = json.loads(bytes(serialized))
    except ValueError:
        payload = None
    if not isinstance(payload, dict) or payload.get("format") != _FORMAT:
        raise ValueError("deserialize_and_load: these bytes were not written by serialize")
    program = _core.program_from_stablehlo(payload["program"])
    arguments = payload["arguments"]
    args, kwargs = in_tree.unflatten([ShapeDtypeStruct(tuple(shape), dtype) for shape, dtype, _ in arguments])

    def run(*args, **kwargs):
        return out_tree.unflatten(eval_jaxpr(program.jaxpr, program.consts, *tree_util.tree_leaves((args, kwargs))))

    run.__name__ = payload["name"]
    donated = iter([flag for _, _, flag in arguments])
    donated = [i for i, arg in enumerate(args) if all([next(donated) for _ in tree_util.tree_leaves(arg)]) and tree_util.tree_leaves(arg)]
    return jit(run, donate_argnums=donated).lower(*args, **kwargs).compile()


explain_missing(__name__)
