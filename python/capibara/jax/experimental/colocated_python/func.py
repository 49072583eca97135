"""Functions of jax.experimental.colocated_python: called with arrays, they run in the process that holds them."""
import functools
from collections.abc import Callable, Sequence
from typing import Any

from capibara import _core
from capibara._modules import explain_missing
from capibara.jax._api import device_put
from capibara.jax._devices import Device

_FIELDS = ("in_specs", "out_specs_fn", "out_specs_treedef", "out_specs_leaves", "devices")


def _devices_of(leaves: Sequence[Any]) -> tuple[Device, ...] | None:
    found = None
    for leaf in leaves:
        if not isinstance(leaf, _core.Array):
            raise ValueError(f"colocated_python: arguments and results must be arrays, got {type(leaf).__name__}")
        own = tuple(leaf.sharding._device_assignment) if hasattr(leaf.sharding, "_device_assignment") else tuple(
            sorted(leaf.sharding.device_set, key=lambda device: device.id))
        if found is not None and set(own) != set(found):
            raise ValueError(f"All arguments must use the same device list, but got multiple device lists: {found}, {own}.")
        found = own
    return found


class ColocatedFunction:
    """A function that runs on the host of its arguments, and its specialization."""

    def __init__(self, fun: Callable[..., Any], said: dict[str, Any] | None = None) -> None:
        self._fun, self._said = fun, said or {}
        functools.update_wrapper(self, fun)

    def specialize(self, in_specs: Any = None, out_specs_fn: Callable[..., Any] | None = None, out_specs_treedef: Any = None,
                   out_specs_leaves: Sequence[Any] | None = None, devices: Sequence[Device] | None = None) -> "ColocatedFunction":
        """The same function with the types of its arguments and results, or its devices, fixed in advance."""
        said = dict(self._said)
        for name, value in zip(_FIELDS, (in_specs, out_specs_fn, out_specs_treedef, out_specs_leaves, devices)):
            if value is None:
                continue
            if name in said:
                raise ValueError(f"{name} already specified")
            said[name] = tuple(value) if name == "devices" else value
        return ColocatedFunction(self._fun, said)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, structure = _core.tree_flatten((args, kwargs))
        own = _devices_of(leaves) or self._said.get("devices")
        if own is None:
            raise ValueError("No devices found. colocated_python function without input arguments must be first specialized with devices.")
        absent = [device for device in own if not device.addressable]
        if absent:
            raise NotImplementedError(f"colocated_python: {absent[0]} belongs to process {absent[0].process_index}; call it there")
        self._check("an argument", self._said.get("in_specs"), leaves, structure)
        result = self._fun(*args, **kwargs)
        leaves, structure = _core.tree_flatten(result)
        _devices_of(leaves)
        specs = self._out_specs(args, kwargs, structure)
        self._check("the result", specs, leaves, structure)
        if specs is not None:
            wanted = [getattr(spec, "sharding", None) for spec in _core.tree_flatten(specs)[0]]
            leaves = [leaf if place is None or leaf.sharding == place else device_put(leaf, place) for leaf, place in zip(leaves, wanted)]
        return structure.unflatten(leaves)

    def _out_specs(self, args: tuple[Any, ...], kwargs: dict[str, Any], structure: Any) -> Any:
        if "out_specs_fn" in self._said:
            return self._said["out_specs_fn"](*args, **kwargs)
        if "out_specs_leaves" in self._said:
            return (self._said.get("out_specs_treedef") or structure).unflatten(list(self._said["out_specs_leaves"]))
        return None

    @staticmethod
    def _check(what: str, specs: Any, leaves: Sequence[Any], structure: Any) -> None:
        if specs is None:
            return
        expected, expected_structure = _core.tree_flatten(specs)
        if expected_structure != structure:
            raise ValueError(f"colocated_python: {what} has the structure {structure}, expected {expected_structure}")
        for leaf, spec in zip(leaves, expected):
            if tuple(leaf.shape) != tuple(spec.shape) or leaf.dtype != spec.dtype:
                raise ValueError(f"colocated_python: {what} is {leaf.dtype}{list(leaf.shape)}, expected {spec.dtype}{list(spec.shape)}")


explain_missing(__name__)
