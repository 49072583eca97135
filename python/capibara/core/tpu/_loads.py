"""Device loads from counts and timings, and rebalancing: the core decides, this module moves the arrays."""
import capibara.jax as jax
from capibara import _core, _tracebacks
from capibara.core.tpu._strategies import require_mesh, spec_of
from capibara.jax import numpy as jnp
from capibara.jax.sharding import NamedSharding
from capibara.model import as_model


def device_load(amounts, shape, headroom=1.25):
    """The load of each device of a (rows, columns) mesh, from its tokens or seconds: for detect_hotspots.

    A load is relative to a device's capacity, which is `headroom` times the mean: with equal work it is 1 / headroom, 0.8.
    """
    rows, columns = shape
    return _core.tpu.device_load([float(amount) for amount in amounts], rows, columns, headroom)


def tokens_by_device(counts, devices):
    """Tokens per device from a router's counts [experts]; each of `devices` has the same number of consecutive experts."""
    return _core.tpu.tokens_by_device(jnp.asarray(counts), devices)


def device_seconds(function, array, repeats=3):
    """Seconds of function(part) for the part of an array on each device, one after another: the minimum over `repeats` calls."""
    return _core.tpu.device_seconds(function, jnp.asarray(array), repeats)


def balance_experts(counts, devices):
    """An order of the experts that gives devices nearly equal work: order[slot] is the expert's index."""
    return _core.tpu.balance_experts(jnp.asarray(counts), devices)


def reorder_experts(model, prefix, order):
    """The model with the experts of one layer reordered, which moves them to other devices.

    `prefix` is the common prefix of the layer's parameter names. Router and experts are reordered together, so the model's results do not
    change. Parameters keep their shardings. Experts are dimensions with the logical axis "expert"; a router's name ends in "router".
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
    """The model with every parameter of at least len(spec) dimensions split by `spec` along its last dimensions.

    `spec` is a result of optimize_sharding. Axes that do not divide a dimension are left out; other parameters are not moved.
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
