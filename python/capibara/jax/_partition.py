"""Placement by specification alone: `partition`, which jax does not have, and pjit."""
import functools

from capibara import _core, _tracebacks
from capibara.jax._abstract_mesh import get_abstract_mesh
from capibara.jax._api import jit
from capibara.jax._devices import devices
from capibara.jax._mesh import Mesh, PartitionSpec, current_mesh, entered_mesh, run_in_mesh
from capibara.jax._placing import UNSPECIFIED, check_same_devices, check_targets, device_put
from capibara.jax._sharding import NamedSharding
from capibara.jax.tree_util import tree_leaves, tree_map


def partition(array, spec, mesh=None):
    """Splits an array over a mesh according to a specification.

    The default mesh is the one of `set_mesh` or `with mesh:`; if there is none, all devices, in a grid as square as possible
    over the axes that the specification names.
    """
    spec = spec if isinstance(spec, PartitionSpec) else PartitionSpec(*spec)
    return device_put(array, NamedSharding(mesh or current_mesh() or _mesh_of_all_devices(spec), spec))


def _mesh_of_all_devices(spec):
    names = [name for entry in spec for name in (entry if isinstance(entry, tuple) else (entry,)) if isinstance(name, str)]
    return Mesh(devices(), tuple(names) or ("devices",))


def pjit(fun=None, in_shardings=UNSPECIFIED, out_shardings=UNSPECIFIED, *, in_axis_resources=None, out_axis_resources=None, **options):
    """jit under its older name, running on the devices of the mesh of `with mesh:`, with the older names of in_shardings and
    out_shardings too. In these, None means the whole array on each device. Without a function it is a decorator."""
    requested = {"in_shardings": in_shardings, "out_shardings": out_shardings}
    for old, new, value in (("in_axis_resources", "in_shardings", in_axis_resources),
                            ("out_axis_resources", "out_shardings", out_axis_resources)):
        if value is not None:
            if requested[new] is not UNSPECIFIED and requested[new] is not value:
                raise ValueError(f"pjit: {old} is the older name of {new}; give one of them, got both")
            requested[new] = value
    if fun is None:
        return lambda function: pjit(function, **requested, **options)
    for word, targets in requested.items():
        check_targets(word, targets)
        if targets is not UNSPECIFIED and (options.get("device") or options.get("backend")):
            raise ValueError(f"If backend or device is specified on jit, then {word} should not be specified.")
    return _OnMesh(fun, requested, options)


class _OnMesh:
    """A function compiled separately for each mesh in whose context it is called."""

    def __init__(self, fun, requested, options):
        self._fun, self._requested, self._options, self._compiled = fun, requested, options, {}
        self._unplaced = jit(fun, **options)  # raises immediately for wrong options
        functools.update_wrapper(self, fun, updated=())

    def __call__(self, *args, **kwargs):
        return self._on_mesh("__call__", args, kwargs)

    def lower(self, *args, **kwargs):
        return self._on_mesh("lower", args, kwargs)

    def trace(self, *args, **kwargs):
        return self._on_mesh("trace", args, kwargs)

    def eval_shape(self, *args, **kwargs):
        return self._on_mesh("eval_shape", args, kwargs)

    def clear_cache(self):
        self._compiled.clear()
        self._unplaced.clear_cache()

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def _on_mesh(self, method, args, kwargs):
        entered = entered_mesh()
        mesh = entered or current_mesh()
        if entered is not None and (self._options.get("device") or self._options.get("backend")):
            raise ValueError("Mesh context manager should not be used with jit when backend or device is also specified as an argument to "
                             "jit.")
        if mesh not in self._compiled:
            shardings = {word: tree_map(lambda target: _in_mesh(target, mesh, word), targets, is_leaf=lambda leaf: leaf is None)
                         for word, targets in self._requested.items() if targets is not UNSPECIFIED}
            self._compiled[mesh] = jit(self._fun, **shardings, **self._options) if shardings else self._unplaced
        function = getattr(self._compiled[mesh], method)
        outer = get_abstract_mesh()
        if entered is not None and not outer.empty and outer.size != entered.size:
            raise ValueError(f"use_abstract_mesh cannot change the size of the mesh. Got new mesh: {entered.abstract_mesh} with "
                             f"size={entered.size} and prev mesh: {outer} with size={outer.size}")
        if entered is None or entered.empty:
            return function(*args, **kwargs)
        around = entered._flat_devices_tuple
        for leaf in tree_leaves((args, kwargs)):
            if isinstance(leaf, _core.ArrayImpl) and leaf.committed:
                own = f"argument of {self.__name__} with shape {_core.type_of(leaf).str_short()} and"
                check_same_devices([(own, leaf.sharding._device_list), ("jit's context devices", around)])
        return run_in_mesh(entered, function, args, kwargs)


def _in_mesh(target, mesh, word):
    """Resolves a specification or None in the context mesh of pjit."""
    if target is None:
        return UNSPECIFIED if mesh is None or mesh.empty else NamedSharding(mesh, PartitionSpec())
    if not isinstance(target, PartitionSpec):
        return target
    if mesh is None or mesh.empty:
        raise RuntimeError(f"pjit requires a non-empty mesh in context if you are passing `PartitionSpec`s to {word}. You can define a "
                           "context "
                           f"mesh via `jax.set_mesh(mesh)`. Alternatively, provide `Sharding`s to {word} and then the mesh context manager "
                           "is not required.")
    return NamedSharding(mesh, target)


_tracebacks.guard(__name__)
