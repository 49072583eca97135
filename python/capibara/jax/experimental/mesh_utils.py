"""jax.experimental.mesh_utils: grids of devices for meshes."""
import math
from collections.abc import Sequence

import numpy as np

from capibara._modules import explain_missing
from capibara.jax._devices import Device
from capibara.jax._devices import devices as _all_devices
from capibara.jax.experimental._torus import torus_mesh


def create_device_mesh(mesh_shape: Sequence[int], devices: Sequence[Device] | None = None, *, contiguous_submeshes: bool = False,
                       allow_split_physical_axes: bool = False) -> np.ndarray:
    """The devices as a grid: TPUs by their neighbours in the torus, others in the given order.

    A torus axis is split over several mesh axes only with allow_split_physical_axes, and only if whole axes do not fit.
    """
    chosen = list(_all_devices() if devices is None else devices)
    if not all(hasattr(size, "__index__") for size in mesh_shape):
        raise ValueError(f"`mesh_shape` passed to `create_device_mesh` should be a sequence of ints. Got {mesh_shape}")
    if math.prod(mesh_shape) != len(chosen):
        raise ValueError(f"Number of devices {len(chosen)} must equal the product of mesh_shape {tuple(mesh_shape)}")
    if chosen and getattr(chosen[-1], "platform", "") == "tpu" and hasattr(chosen[-1], "coords"):
        return torus_mesh(tuple(mesh_shape), chosen, contiguous_submeshes, allow_split_physical_axes)
    grid = np.empty(len(chosen), dtype=object)
    grid[:] = chosen
    return grid.reshape(tuple(mesh_shape))


def create_hybrid_device_mesh(mesh_shape: Sequence[int], dcn_mesh_shape: Sequence[int], devices: Sequence[Device] | None = None, *,
                              process_is_granule: bool = False, should_sort_granules_by_key: bool = True,
                              allow_split_physical_axes: bool = False) -> np.ndarray:
    """A grid each of whose axes combines `dcn_mesh_shape` across groups of devices with `mesh_shape` inside a group."""
    chosen = list(_all_devices() if devices is None else devices)
    granules = {}
    for device in chosen:
        granule = device.process_index if process_is_granule else getattr(device, "slice_index", device.process_index)
        granules.setdefault(granule, []).append(device)
    order = sorted(granules) if should_sort_granules_by_key else list(granules)
    if math.prod(dcn_mesh_shape) != len(order):
        raise ValueError(f"Number of slices {len(order)} must equal the product of dcn_mesh_shape {tuple(dcn_mesh_shape)}")
    grids = [create_device_mesh(mesh_shape, granules[key], allow_split_physical_axes=allow_split_physical_axes) for key in order]
    outer = np.empty(len(order), dtype=object)
    for i, grid in enumerate(grids):
        outer[i] = grid
    return np.block(outer.reshape(tuple(dcn_mesh_shape)).tolist())


explain_missing(__name__)
