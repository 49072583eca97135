"""jax.experimental.topologies: descriptions of devices, for compiling programs without having them."""
from collections.abc import Sequence

from capibara import _core
from capibara._modules import explain_missing
from capibara.jax._devices import Device
from capibara.jax._devices import find_plugins as _find_plugins
from capibara.jax._mesh import Mesh as _Mesh


class _TopologyDevice(Device):
    """A described device: programs are compiled for it, and run elsewhere."""

    def __init__(self, placement_platform, platform, number, kind, process_index):
        super().__init__(platform, number, kind, process_index, addressable=False)
        self._named = placement_platform

    @property
    def _placement_platform(self):
        return self._named

    def __eq__(self, other):
        return isinstance(other, _TopologyDevice) and (self._placement_platform, self.id) == (other._placement_platform, other.id)

    def __hash__(self):
        return hash((self._placement_platform, self.id))


class TopologyDescription:
    """The devices of a topology."""

    def __init__(self, devices: Sequence[Device]) -> None:
        self.devices = devices


def _description(found):
    placement_platform, platform, rows = found
    shown = "gpu" if platform in ("cuda", "rocm") else platform
    return TopologyDescription([_TopologyDevice(placement_platform, shown, number, kind, process) for number, kind, process in rows])


def get_topology_desc(topology_name: str = "", platform: str | None = None, **kwargs: object) -> TopologyDescription:
    """A topology by name: 'v5e:4x4' or 'v4:2x2x4' of TPUs, '1x1x4' of GPUs (slices, hosts, GPUs per host).

    Options are passed to the plugin: chips_per_host_bounds=[2, 2, 1], num_slices=2, target_config='...'.
    """
    _find_plugins()
    return _description(_core.make_topology(platform, topology_name, kwargs))


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """The topology of the devices present."""
    _find_plugins()
    return _description(_core.attached_topology(platform or _core.platform().split(",")[0]))


def make_mesh(topo: TopologyDescription, mesh_shape: Sequence[int], axis_names: Sequence[str], *,
              contiguous_submeshes: bool = False) -> _Mesh:
    """A mesh of a topology's devices, in their order."""
    import numpy as np
    if contiguous_submeshes:
        raise NotImplementedError("topologies.make_mesh: contiguous_submeshes is not supported")
    grid = np.empty(len(topo.devices), dtype=object)
    grid[:] = topo.devices
    return _Mesh(grid.reshape(tuple(mesh_shape)), axis_names)


explain_missing(__name__)
