"""Loads of devices from what was counted and timed, and the moves that balance them; the core decides, arrays move here."""
import capibara.jax as jax
from capibara import _core, _tracebacks
from capibara.core.tpu._strategies import require_mesh, spec_of
from capibara.jax import numpy as jnp
from capibara.jax.sharding import NamedSharding
from capibara.model import as_model


def device_load(amounts, shape, headroom=1.25):
    """The load of each device of a mesh of this shape, (rows, columns), of its tokens or seconds: for detect_hotspots.

    A load is the share of a device's room, which is `headroom` times the mean: devices with equal work have 1 / headroom, 0.8.
    """
    rows, columns = shape
    return _core.tpu.device_load([float(amount) for amount in amounts], rows, columns, headroom)


def tokens_by_device(counts, devices):
    """Tokens that each of `devices`, with equal numbers of consecutive experts, computes for, of a router's counts [experts]."""
    return _core.tpu.tokens_by_device(jnp.asarray(counts), devices)


def device_seconds(function, array, repeats=3):
    """Seconds that function(part) takes for the part of an array on each device, one after another: the shortest of so many calls."""
    return _core.tpu.device_seconds(function, jnp.asarray(array), repeats)


def balance_experts(counts, devices):
    """Which expert comes to which place so that devices have nearly equal work: order[place] is the number of the expert."""
    return _core.tpu.balance_experts(jnp.asarray(counts), devices)


def reorder_experts(model, prefix, order):
    """The model of which the experts of one layer are in another order, so that they are on other devices.

    `prefix` is what the names of the layer's parameters begin with. Router and experts change together: the model computes what it did.
    Parameters stay split as they were. Experts are dimensions with the logical axis "expert", routers the parameters whose names end so.
    """
    made = _with_params("reorder_experts", model)
    named = dict(made.by_name(made.params))
    order = [int(number) for number in order]
    dimensions = _core.tpu.expert_dimensions(list(made.types().items()), made.logical_axes()["of"], prefix, order)
    for name, dimension in dimensions.items():
        array = jnp.asarray(named[name])
        named[name] = jax.device_put(jnp.take(array, jnp.asarray(order), axis=dimension), array.sharding)
    return made.with_params(made.tree(named))


def reshard(model, mesh, spec):
    """The model with its parameters of as many dimensions as `spec` or more split as it says along their last ones.

    `spec` is what optimize_sharding chose. Axes that do not divide a dimension leave it whole; other parameters are where they were.
    """
    require_mesh("reshard", mesh)
    made = _with_params("reshard", model)
    entries = [() if axes is None else (axes,) if isinstance(axes, str) else tuple(axes) for axes in spec]
    sizes = list(mesh.axis_names), [mesh.shape[axis] for axis in mesh.axis_names]

    def place(array):
        if len(array.shape) < len(entries):
            return array
        return jax.device_put(array, NamedSharding(mesh, spec_of(_core.tpu.fitted_spec(entries, list(array.shape), *sizes))))

    return made.with_params(jax.tree_util.tree_map(place, made.params))


def _with_params(operation, model):
    made = as_model(model, operation=operation)
    if made.params is None:
        raise TypeError(f"{operation}: {made.name} has no parameters yet (argument 'model'): as_model(model, params), with params made by "
                        "its init(key)")
    return made


_tracebacks.guard(__name__)
