"""jax.experimental.multihost_utils: exchange of host arrays between the processes of a program."""
import sys

import numpy as np

from capibara import _core
from capibara._modules import explain_missing
from capibara.jax import tree
from capibara.jax._devices import process_count
from capibara.jax._joining import make_array_from_process_local_data, make_array_from_single_device_arrays
from capibara.jax._mesh import Mesh
from capibara.jax._placing import spread
from capibara.jax._sharding import NamedSharding
from capibara.jax.distributed import _line_of


def process_allgather(in_tree: object, tiled: bool = False):
    """The arrays of all processes, of equal shape: stacked along a new first axis, or concatenated along the first if tiled."""
    line = _line_of(sys._getframe())

    def gather(x):
        if isinstance(x, _core.Array) and not x.is_fully_addressable:
            if not tiled:
                raise ValueError("Gathering global non-fully-addressable arrays only supports tiled=True")
            return np.asarray(_core.array_of_this_process(x))  # every process holds the whole array
        if process_count() == 1:
            return np.asarray(x) if tiled else np.expand_dims(np.asarray(x), axis=0)
        return np.asarray(_core.process_all_gather(x, tiled, line))

    return tree.map(gather, in_tree)


def broadcast_one_to_all(in_tree: object, is_source: bool | None = None):
    """The values of the source, by default process 0; all processes pass the same shapes."""
    line = _line_of(sys._getframe())
    if process_count() == 1:
        return tree.map(np.asarray, in_tree)
    source = None if is_source is None else bool(is_source)
    return tree.map(lambda x: np.asarray(_core.process_broadcast(x, source, line)), in_tree)


def sync_global_devices(name: str) -> None:
    """A barrier: returns when all processes have called it with this name."""
    if process_count() > 1:
        _core.process_barrier(f"sync_global_devices('{name}')", _line_of(sys._getframe()))


def reached_preemption_sync_point(step_id: int) -> bool:
    """True if all processes have reached the step at which a preempted program saves; never true for a single process."""
    if process_count() > 1:
        raise RuntimeError(f"reached_preemption_sync_point(step_id={step_id}): processes are not notified of preemptions; "
                           "capibara.training's Trainer saves when it is sent SIGTERM")
    return False


def assert_equal(in_tree: object, fail_message: str = "") -> None:
    """Raises AssertionError if the processes have different values."""
    def repeat(x):
        x = np.asarray(x)
        return np.concatenate([x[None] if x.ndim == 0 else x] * process_count())

    out = process_allgather(in_tree, tiled=True)
    if not tree.all(tree.map(lambda own, all_of: np.all(np.equal(own, all_of)), tree.map(repeat, in_tree), out)):
        raise AssertionError(f"{fail_message}. Expected: {out}; got: {in_tree}.")


def host_local_array_to_global_array(local_inputs: object, global_mesh: Mesh, pspecs: object):
    """Global arrays from the part of each process; if a specification does not split over processes, all pass the same
    values."""
    def one(x, spec):
        if isinstance(x, _core.Array) and not x.is_fully_addressable:
            return x
        return make_array_from_process_local_data(NamedSharding(global_mesh, spec), x)

    return _mapped(one, local_inputs, pspecs, "input pspecs")


def global_array_to_host_local_array(global_inputs: object, global_mesh: Mesh, pspecs: object):
    """This process's part of global arrays, over its own devices."""
    def one(x, spec):
        if x.is_fully_addressable:
            return x
        own = NamedSharding(global_mesh.local_mesh, spec)
        parts = [shard.data for shard in x.addressable_shards]
        shape = list(parts[0].shape)
        for dim, entry in enumerate(spec):
            names = (entry,) if isinstance(entry, str) else entry or ()
            for name in names:
                shape[dim] *= own.mesh.shape[name]
        return make_array_from_single_device_arrays(tuple(shape), own, parts)

    return _mapped(one, global_inputs, pspecs, "output pspecs")


def _mapped(function, inputs, pspecs, what):
    leaves, structure = _core.tree_flatten(inputs)
    specs = spread(pspecs, inputs, what)
    if any(spec is None for spec in specs):
        raise ValueError("`None` is not a valid input to the pspecs argument. Please use jax.sharding.PartitionSpec() if you wanted to "
                         "replicate your input.")
    return structure.unflatten([function(leaf, spec) for leaf, spec in zip(leaves, specs)])


explain_missing(__name__)
