"""Moves arrays between devices and constrains values: applies devices, shardings and specifications to trees."""
import enum

from capibara import _core, _tracebacks
from capibara._origins import argument_name
from capibara._tree_errors import prefix_errors
from capibara.jax import tree_util
from capibara.jax._abstract_mesh import get_abstract_mesh
from capibara.jax._axes import AbstractMesh, AxisType
from capibara.jax._devices import Device, _called, devices, local_devices, process_count
from capibara.jax._mesh import Mesh, PartitionSpec, Unconstrained, current_mesh, grid_of
from capibara.jax._sharding import AutoLayout, Format, Layout, NamedSharding, Sharding, SingleDeviceSharding, check_once


class UnspecifiedValue:
    """A placement chosen by the compiler, where None has another meaning."""

    def __repr__(self):
        return "UnspecifiedValue"


UNSPECIFIED = UnspecifiedValue()


def _require_row_major(layout, operation):
    if layout is None or isinstance(layout, AutoLayout):
        return
    if tuple(layout.major_to_minor) != tuple(range(len(layout.major_to_minor))) or layout.tiling or layout.sub_byte_element_size_in_bits:
        raise NotImplementedError(f"{operation}: arrays are row-major and not tiled, got {layout}")


class Space(enum.Enum):
    """A memory space: device memory, host memory, or either."""
    Device = 1
    Host = 2
    Any = 3

    def __repr__(self):
        return f"MemorySpace.{self.name}"

    __str__ = __repr__


def _in_space(leaf, space):
    """The sharding of an array in another memory space."""
    own = leaf.sharding if isinstance(leaf, _core.ArrayImpl) else SingleDeviceSharding(local_devices()[0])
    return own.with_memory_kind("pinned_host" if space is Space.Host else None)


def device_text(devices):
    """Devices as text for errors."""
    return f"with device ids {[device.id for device in devices]} on platform {devices[0].platform.upper()}"


def check_same_devices(found):
    """Raises if the values of a program, [(description, devices)], are on different devices or on the same in a different order."""
    for what, devices in found[1:]:
        if tuple(devices) != tuple(found[0][1]):
            raise ValueError(f"Received incompatible devices for jitted computation. Got {found[0][0]} {device_text(found[0][1])} and "
                             f"{what} "
                             f"{device_text(devices)}")


def arguments_elsewhere(function, numbered, leaves):
    """A jitted function's error message for arguments on different devices; None if they are on the same."""
    name = getattr(function, "__qualname__", getattr(function, "__name__", "function"))
    found = [(f"argument {argument_name(function, numbered, i)} of {name} with shape {_core.type_of(leaf).str_short()} and",
              leaf.sharding._device_list)
             for i, leaf in enumerate(leaves) if not isinstance(leaf, (_core.Tracer, _core.Ref)) and leaf.committed]
    try:
        check_same_devices(found)
    except ValueError as error:
        return str(error)


def resolve(target, operation):
    """Resolves a device, a sharding, or a specification in a mesh context to a sharding; None stays None."""
    if isinstance(target, UnspecifiedValue):
        return None
    if isinstance(target, Format):
        _require_row_major(target.layout, operation)
        target = target.sharding
    if target is None or isinstance(target, Sharding):
        return target
    if isinstance(target, Device):
        return SingleDeviceSharding(target)
    if isinstance(target, PartitionSpec):
        mesh = current_mesh() or get_abstract_mesh()  # inside shard_map: its mesh
        if mesh.empty:
            # "pjit in_shardings" is the argument in_shardings of jit
            function, _, argument = operation.replace("pjit", "jit").partition(" ")
            raise RuntimeError(f"{function} requires a non-empty mesh in context if you are passing `PartitionSpec`s to "
                               f"{argument or 'shardings'}. You can define a context mesh via `jax.set_mesh(mesh)`. Alternatively, provide "
                               f"`Sharding`s to {argument or 'shardings'} and then the mesh context manager is not required.")
        return NamedSharding(mesh, target)
    raise ValueError(f"{operation}: Received invalid value {target!r}; expected a Device, a Sharding or a PartitionSpec")


def _check_layout(layout, leaf, operation):
    """Raises if a layout is for arrays of a different rank."""
    if isinstance(layout, Layout):
        try:
            layout.check_compatible_aval(_core.as_array(leaf).shape)
        except ValueError as error:
            border = {"pjit in_shardings": "jit arguments", "device_put": "jit outputs with pytree key path result"}
            raise ValueError(f"One of {border.get(operation, 'jit outputs')} is incompatible with its layout annotation {layout}: "
                             f"{error}") from None


def with_layout_constraint(x, layouts):
    """Returns x, checking that the layouts are row-major, the layout of all arrays."""
    leaves, structure = _core.tree_flatten(x)
    kept = tree_util.tree_leaves(layouts, is_leaf=lambda leaf: isinstance(leaf, Layout))
    for leaf, layout in zip(leaves, kept * len(leaves) if len(kept) == 1 else kept):
        _check_layout(layout, leaf, "with_layout_constraint")
        _require_row_major(layout, "with_layout_constraint")
    return structure.unflatten([_core.as_array(leaf) for leaf in leaves])


def _is_target(value):
    return value is None or isinstance(value, (Sharding, PartitionSpec, Device, Format, Space, UnspecifiedValue))


def spread(targets, tree, operation):
    """Broadcasts a tree prefix of targets to one target per leaf of a tree."""
    leaves, structure = tree_util.tree_flatten(targets, is_leaf=_is_target)
    try:
        below = structure.flatten_up_to(tree)
    except (ValueError, TypeError):
        found = [str(make(operation)) for make in prefix_errors(targets, tree, _is_target)]
        raise ValueError(f"{operation} specification must be a tree prefix of the corresponding value, got specification {targets!r}.\n"
                         f"Mismatch details ({len(found)} found):\n" + "\n".join(found)) from None
    spread_out = []
    for target, subtree in zip(leaves, below):
        spread_out += [target] * len(_core.tree_leaves(subtree))
    return spread_out


def constrain(tree, targets, operation, border):
    """Applies its sharding constraint to every leaf of a tree."""
    leaves, structure = _core.tree_flatten(tree)
    constrained = []
    for leaf, target in zip(leaves, spread(targets, tree, operation)):
        _check_layout(getattr(target, "layout", None), leaf, operation)
        sharding = resolve(target, operation)
        if sharding is not None:
            array = _core.as_array(leaf)
            sharding = _on_devices(sharding, array)
            _check_rank(sharding, array.shape, operation)
            if border == 0:
                _check_manual(sharding)
                if isinstance(array, _core.ArrayImpl) and array.committed:
                    own = f"argument x of _identity_fn with shape {_core.type_of(array).str_short()} and"
                    check_same_devices([(own, array.sharding._device_list), ("explicit output sharding", sharding._device_list)])
            if border == 0 and not _is_even(sharding, array.shape):
                constrained.append(array)  # only a hint inside a program, which the compiler may ignore
                continue
            sharding.shard_shape(array.shape)
            leaf = _constrained(array, sharding, border)
        constrained.append(leaf)
    return structure.unflatten(constrained)


def _constrained(array, sharding, border):
    """Applies a constraint to an array; with Explicit axes, its type determines the placement."""
    kinds = sharding.mesh.axis_types if isinstance(sharding, NamedSharding) else ()
    if AxisType.Explicit not in kinds:
        if border == 0 and isinstance(array, _core.ArrayImpl) and not sharding._unconstrained:
            return _core.device_put(array, sharding._placement)
        return _core.sharding_constraint(array, sharding._placement, sharding._unconstrained, border)
    if border:
        if border == 1:
            _check_argument(array, sharding)
        return _core.reshard(array, sharding._placement, True)
    if all(kind is AxisType.Explicit for kind in kinds):
        _assert_sharding(array, sharding.spec)
        return array
    for name in (name for entry in sharding.spec for name in (entry if isinstance(entry, tuple) else (entry,)) if isinstance(name, str)):
        if sharding.mesh.type_of(name) is not AxisType.Auto:
            raise ValueError("The spec of NamedSharding passed to with_sharding_constraint can only refer to Auto axes of the mesh. Got "
                             f"spec={sharding.spec} and mesh={sharding.mesh.abstract_mesh}. You probably meant to use `reshard` API?")
    return _core.sharding_constraint(array, sharding._placement, sharding._unconstrained, border)


def _check_argument(array, sharding):
    """Raises if the sharding in an argument's type differs from in_shardings."""
    own = _core.type_of(array)
    if not own.sharding.mesh.explicit_axes or own.sharding.mesh.shape_tuple != sharding.mesh.shape_tuple:
        return
    held = NamedSharding(sharding.mesh, own.sharding.spec)
    if not held.is_equivalent_to(sharding, array.ndim):
        raise ValueError("Sharding passed to jit does not match the sharding on the respective arg. Got jit sharding: "
                         f"{sharding},\narg sharding: {held} for arg type: {own}")


def _check_manual(sharding):
    """Raises if a sharding uses Manual axes of the enclosing shard_map."""
    around = get_abstract_mesh()
    if not isinstance(sharding, NamedSharding) or not around.manual_axes:
        return
    named = {name for entry in sharding.spec for name in (entry if isinstance(entry, tuple) else (entry,)) if isinstance(name, str)}
    if named & set(around.manual_axes):
        raise ValueError(f"pspec {sharding.spec} contains a manual axes {around.manual_axes} of mesh which is not allowed. If you "
                         "are using a with_sharding_constraint under a shard_map, only use the mesh axis in PartitionSpec which are "
                         "not manual.")


def _assert_sharding(array, spec):
    own = _core.type_of(array).sharding.spec
    expected = PartitionSpec(*spec.partitions, *(None,) * (array.ndim - len(spec)))
    for mine, one in zip(own.partitions, expected.partitions):
        if not isinstance(one, Unconstrained) and mine != one:
            raise AssertionError("`with_sharding_constraint` acts as an assert when all axes of mesh are of type "
                                 "`Explicit`. The array sharding: "
                                 f"{own} did not match the sharding provided: {expected}. Please use `jax.sharding.reshard` to shard your "
                                 "input to the sharding you want.")


_NAMES_OF_VALUES = {"pjit in_shardings": "pjit arguments", "pjit out_shardings": "pjit outputs", "device_put": "device_put args"}


def _check_rank(sharding, shape, operation):
    """Raises if an array of this shape has too few dimensions."""
    try:
        sharding.check_compatible_aval(shape)
    except ValueError as error:
        what = _NAMES_OF_VALUES.get(operation, f"{operation} arguments")
        raise ValueError(f"One of {what} is incompatible with its sharding annotation {sharding}: {error}") from None


def _is_even(sharding, shape):
    return all(size % sharding._placement.parts(dim) == 0 for dim, size in enumerate(shape))


def _on_devices(sharding, array):
    """Moves a sharding on an abstract mesh to the devices of the context mesh or of the array."""
    if not isinstance(sharding, NamedSharding) or not isinstance(sharding.mesh, AbstractMesh):
        return sharding
    around, count = current_mesh(), sharding.mesh.size
    if around is not None and around.shape_tuple == sharding.mesh.shape_tuple:
        found = around
    elif isinstance(array, _core.Tracer):
        found = Mesh(grid_of(devices()[:count], sharding.mesh.axis_sizes), sharding.mesh.axis_names, sharding.mesh.axis_types)
    elif isinstance(array.sharding, NamedSharding):
        found = array.sharding.mesh
    else:
        raise TypeError("The sharding on the input must be a `NamedSharding` since the target sharding has an `AbstractMesh` in it. Got "
                        f"sharding type {type(array.sharding)} for shape {_core.type_of(array)}")
    return NamedSharding(found, sharding.spec, memory_kind=sharding.memory_kind)


def with_sharding_constraint(x, shardings):
    """The value of x, placed according to the shardings inside a compiled program."""
    if any(target is None for target in spread(shardings, x, "with_sharding_constraint shardings")):
        raise ValueError("One of with_sharding_constraint arguments got sharding None which is not allowed. Please only pass "
                         "`jax.sharding.Sharding` instances.")
    return constrain(x, shardings, "with_sharding_constraint", 0)


def device_put(x, device, may_alias=None, donate=False):
    """Places every leaf of a tree: on the default device, on a device, or according to a sharding.

    `may_alias` and `donate` are trees of flags like `device`: may_alias=False gives a leaf its own memory, and the source of
    a donated leaf is deleted if the result is on other devices or does not share its memory.
    """
    leaves, structure = _core.tree_flatten(x)
    targets = [None] * len(leaves) if device is None else spread(device, x, "device_put device")
    donated, shares = _flags(donate, x, leaves), _flags(may_alias, x, leaves)
    results = []
    for leaf, target, given, may_share in zip(leaves, targets, donated, shares):
        if given and may_share:
            raise ValueError("may_alias and donate cannot be True at the same time.")
        if isinstance(target, PartitionSpec) and current_mesh() is None:
            raise ValueError("Please set a mesh via `jax.set_mesh` if a PartitionSpec is passed to device_put")
        if isinstance(target, Space):
            target = _in_space(leaf, target)
        if isinstance(target, Format) and target.layout is Layout.AUTO:
            raise ValueError(f"sharding and layout in `Layout` instance should be concrete. Got layout: {target}")
        _check_layout(getattr(target, "layout", None), leaf, "device_put")
        sharding = resolve(target, "device_put")
        if may_share is not False and not given and _is_placed(leaf, sharding):
            results.append(leaf)
            continue
        result = put(leaf, sharding)
        if not isinstance(result, (_core.Tracer, _core.Ref)):
            shared = isinstance(leaf, _core.Array) and _core.shares_memory(leaf, result)
            if may_share is False and shared:
                result = _core.copied(result)
            elif given and isinstance(leaf, _core.Array):
                if shared and leaf.sharding.device_set != result.sharding.device_set:
                    result, shared = _core.copied(result), False  # devices of one process may share memory that only one of them must keep
                if not shared:
                    leaf.delete()
        results.append(result)
    return structure.unflatten(results)


def _is_placed(leaf, sharding):
    """True if a leaf is an array that already has this placement."""
    if not isinstance(leaf, _core.ArrayImpl):
        return False
    return sharding is None or (leaf.committed and leaf.sharding == sharding)


def _flags(given, tree, leaves):
    """Broadcasts a tree prefix of flags to the leaves; None: unspecified."""
    if given is None or isinstance(given, bool):
        return [given] * len(leaves)
    flags, structure = tree_util.tree_flatten(given)
    return [flag for flag, below in zip(flags, structure.flatten_up_to(tree)) for _ in _core.tree_leaves(below)]


def put_by_default(leaves):
    """Leaves as uncommitted arrays; as tracers inside a traced function."""
    arrays = (leaf if isinstance(leaf, _core.ArrayImpl) else put(leaf, None) for leaf in leaves)
    traces = _core.is_tracing()
    return [_core.stage_value(leaf) if traces and isinstance(leaf, _core.Array) else leaf for leaf in arrays]


def put(leaf, sharding):
    """Places one leaf according to a sharding; without one, on the default device."""
    array = _core.put_array(leaf)
    if sharding is None and isinstance(array, _core.ArrayImpl) and not array.committed:
        return _core.library_function("numpy", "asarray")(array)
    if sharding is None or isinstance(array, _core.Ref):
        return array
    if isinstance(sharding, SingleDeviceSharding) and sharding._device not in devices(_called(sharding._device.platform)):
        raise ValueError(f"no such device: {sharding._device!r}; there are {devices()}")
    _check_rank(sharding, array.shape, "device_put")
    sharding.shard_shape(array.shape)
    if not isinstance(array, _core.Tracer) and not sharding.is_fully_addressable:
        _check_equal_in_all_processes(leaf, array, sharding)
    if isinstance(array, _core.Tracer):
        if isinstance(sharding, NamedSharding) and sharding.mesh.explicit_axes:
            return _core.reshard(array, sharding._placement, True)
        return _core.sharding_constraint(array, sharding._placement, sharding._unconstrained, 0)
    return _core.device_put(array, sharding._placement)


def _check_equal_in_all_processes(leaf, array, sharding):
    """Raises if a value for devices of several processes differs between the processes."""
    if not array.is_fully_addressable or array.committed:
        return
    if not sharding.addressable_devices:
        raise ValueError(f"device_put: this process has none of the devices of {sharding}")
    if process_count() != len({device.process_index for device in sharding.device_set}):
        return
    import numpy as np
    everywhere = np.asarray(_core.process_all_gather(array, False, ""))
    if not (everywhere == np.asarray(array)).all():
        raise AssertionError(f"{type(leaf)} passed to device_put is not the same on each process. Make sure you are passing the same "
                             f"value of {type(leaf)} on each process.. Expected: {everywhere}; got: {leaf}.")


def check_targets(word, targets):
    """Raises if jit's argument in_shardings or out_shardings contains anything but shardings."""
    for target in tree_util.tree_leaves(targets, is_leaf=_is_target):
        if not _is_target(target):
            raise TypeError(f"{word} leaf specifications are expected to be PartitionSpec instances or None, but got {target}")
        if isinstance(target, PartitionSpec):
            check_once(word, target)
        if isinstance(target, NamedSharding) and target.mesh.empty:
            raise ValueError(f"One of {word} leaf specifications got an empty NamedSharding: {target} which is not allowed.")


def bordered(fun, in_shardings, out_shardings, static_argnums):
    """The function with sharding constraints on its arguments and results."""
    for word, targets in (("in_shardings", in_shardings), ("out_shardings", out_shardings)):
        check_targets(word, targets)
        for target in tree_util.tree_leaves(targets, is_leaf=_is_target):
            if isinstance(target, NamedSharding) and any(isinstance(entry, Unconstrained) for entry in target.spec):
                raise ValueError(f"Unconstrained dims are not allowed when passed to {word}: {target}")

    def with_borders(*args, **kwargs):
        check_same_devices([(f"explicit {word} sharding", target._device_list)
                            for word, targets in (("input", in_shardings), ("output", out_shardings))
                            for target in tree_util.tree_leaves(targets, is_leaf=_is_target) if hasattr(target, "_device_list")])
        if in_shardings is not None:
            if kwargs:
                raise ValueError("pjit does not support kwargs when in_shardings is specified.")
            static = {position % len(args) for position in static_argnums} if args else set()
            dynamic = tuple(value for i, value in enumerate(args) if i not in static)
            if isinstance(in_shardings, (tuple, list)) and not isinstance(in_shardings, Format) and len(in_shardings) != len(dynamic):
                raise ValueError("pjit in_shardings specification must be a tree prefix of the positional arguments tuple. In particular, pjit "
                                 "in_shardings must either be a Sharding, a PartitionSpec, or a tuple of length equal to the number of positional "
                                 f"arguments. But pjit in_shardings is the wrong length: got a tuple or list of length {len(in_shardings)} for an "
                                 f"args tuple of length {len(dynamic)}.")
            targets = tuple(in_shardings) if isinstance(in_shardings, list) else in_shardings
            dynamic = iter(constrain(dynamic, targets, "pjit in_shardings", 1))
            args = tuple(value if i in static else next(dynamic) for i, value in enumerate(args))
        result = fun(*args, **kwargs)
        return result if out_shardings is None else constrain(result, out_shardings, "pjit out_shardings", 2)

    return with_borders


_tracebacks.guard(__name__)
