"""Assembles arrays from per-device shards: from callbacks, from arrays on single devices, from the data of each process."""
from capibara import _core, _tracebacks
from capibara._dtypes import KeyType
from capibara._errors import UnexpectedTracerError
from capibara.jax import tree_util
from capibara.jax._devices import device_of
from capibara.jax._placing import put, resolve, spread
from capibara.jax._sharding import SingleDeviceSharding


def make_array_from_callback(shape, sharding, data_callback, dtype=None):
    """An array whose shard on each device is the callback's result for its slices."""
    import numpy as np
    sharding = resolve(sharding, "make_array_from_callback")
    parts = {}
    shards = []
    for device, index in sharding.addressable_devices_indices_map(shape).items():
        key = repr(index)
        if key not in parts:
            data = data_callback(index)
            if isinstance(data, _core.Tracer):
                raise UnexpectedTracerError("jax.make_array_from_callback cannot be called within a traced context.")
            is_key = isinstance(data, _core.Array) and isinstance(data.dtype, KeyType)
            parts[key] = data if is_key else _core.put_array(np.asarray(data, dtype=dtype))
        shards.append(put(parts[key], SingleDeviceSharding(device)))
    return make_array_from_single_device_arrays(shape, sharding, shards)


def make_array_from_single_device_arrays(shape, sharding, arrays, *, dtype=None):
    """One array from shards on its devices. `dtype`, that of the shards, is required if this process has no shard."""
    import numpy as np
    name = "jax.make_array_from_single_device_arrays"
    if not isinstance(arrays, (list, tuple)):
        raise TypeError(f"{name} `arrays` argument must be a list or tuple, but got {type(arrays)}.")
    if any(isinstance(array, _core.Tracer) for array in arrays):
        raise ValueError(f"{name} requires a list of concrete arrays as input, but got types {set(map(type, arrays))}")
    if dtype is None and not arrays:
        raise ValueError(f"If the Array has no addressable shards, `dtype` must be provided via the `dtype` argument to `{name}`.")
    for array in arrays:
        if dtype is not None and array.dtype != dtype:
            raise ValueError(f"If `dtype` is provided to `{name}`, it must match the dtype of the addressable shards. Got "
                             f"dtype={np.dtype(dtype)} and shard dtype={array.dtype}`.")
        if len(array.devices()) != 1:
            raise ValueError("When making an array from single-device arrays the input arrays must have one shard each. An argument "
                             "array had "
                             f"{len(array.devices())} shard(s).")
    if isinstance(sharding, SingleDeviceSharding):
        return arrays[0]
    check_parts(tuple(shape), arrays[0].dtype if arrays else dtype, sharding, arrays)
    by_device = {device_of(array): array for array in arrays}
    own = [by_device[device] for device in sharding._device_list if device.addressable]
    return _core.join_shards(list(shape), sharding._placement, own)


def check_parts(shape, dtype, sharding, arrays):
    """Raises unless there is one shard on each device of a sharding, with the shape and type that it requires."""
    ids = [device_of(array).id for array in arrays]
    expected = {device.id for device in sharding._device_list if device.addressable}
    if len(ids) != len(expected):
        raise ValueError(f"Expected {len(expected)} per-device arrays (this is how many devices are addressable by the sharding), but got "
                         f"{len(ids)}")
    if len(set(ids)) != len(ids):
        raise ValueError("When making an array from single-device arrays, the input arrays must be from distinct devices, but got device "
                         f"IDs {ids}")
    if expected != set(ids):
        text = "Addressable devices and per-device arrays devices do not match."
        if lacking := expected - set(ids):
            text += f" Sharding contains devices {lacking} that are not present in per-device arrays."
        if further := set(ids) - expected:
            text += f" Per-device arrays contain devices {further} that are not present in the sharding."
        raise ValueError(text)
    part = sharding.shard_shape(shape)
    for array in arrays:
        if array.dtype != dtype:
            raise ValueError(f"Input buffers to `Array` must have matching dtypes. Got {array.dtype}, expected {dtype} for buffer: {array}")
        if array.shape != part:
            raise ValueError(f"Expected shard shape {part} doesn't match the single device array shape {array.shape}. Shape of Array is "
                             f"{_core.ShapedArray(shape, dtype).str_short()} with sharding {sharding}")


def make_array_from_process_local_data(sharding, local_data, global_shape=None):
    """A tree of arrays from this process's part of the data, which is all of it for a single process."""
    leaves, structure = _core.tree_flatten(local_data)
    name = "make_array_from_process_local_data"
    shardings = [resolve(one, name) for one in spread(sharding, local_data, f"{name} sharding")]
    shapes = [None] * len(leaves)
    if global_shape is not None:
        shapes = tree_util.broadcast_prefix(global_shape, local_data, is_leaf=lambda leaf: isinstance(leaf, tuple))
    return structure.unflatten([_from_local_data(*one) for one in zip(leaves, shardings, shapes)])


def _from_local_data(data, sharding, global_shape):
    import numpy as np
    data = np.asarray(data)
    if sharding.is_fully_addressable:
        if global_shape is not None and global_shape != data.shape:
            raise ValueError("When calling `make_array_from_process_local_data` on a single process, global_shape should be None or "
                             "equal to "
                             f"local_data.shape.Got global_shape={global_shape} and local_data.shape={data.shape}.")
        return make_array_from_callback(data.shape, sharding, lambda index: data[index])
    own, counts = _part_numbers(sharding, data.ndim)
    if global_shape is None:
        global_shape = tuple(size * counts[dim] // len(own[dim]) for dim, size in enumerate(data.shape))
    for dim, (size, whole) in enumerate(zip(data.shape, global_shape, strict=True)):
        if size != whole and size * counts[dim] != whole * len(own[dim]):
            raise ValueError(f"make_array_from_process_local_data: dimension {dim} of the data of this process must be the whole of "
                             f"{whole} or its part {whole * len(own[dim]) // counts[dim]}, got {size}")

    def part(index):
        slices = []
        for dim, (size, whole) in enumerate(zip(data.shape, global_shape)):
            begin, end, _ = index[dim].indices(whole)
            if size != whole:  # local data: this process's parts, concatenated
                place = own[dim].index(begin * counts[dim] // whole)
                begin, end = place * (end - begin), (place + 1) * (end - begin)
            slices.append(slice(begin, end))
        return data[tuple(slices)]

    return make_array_from_callback(global_shape, sharding, part)


def _part_numbers(sharding, ndim):
    """For each dimension, the numbers of this process's parts; and the number of parts per dimension."""
    counts = [sharding._placement.parts(dim) for dim in range(ndim)]
    own = [set() for _ in counts]
    for index in sharding.addressable_devices_indices_map(counts).values():
        for dim, part in enumerate(index):
            own[dim].add(part.indices(counts[dim])[0])
    return [sorted(numbers) for numbers in own], counts


_tracebacks.guard(__name__)
