"""jax._src.mesh_utils: the steps of arranging TPU devices in a grid."""
from typing import Any

import numpy as np

from capibara._modules import explain_missing
from capibara.jax.experimental import _torus
from capibara.jax.experimental.mesh_utils import create_device_mesh, create_hybrid_device_mesh  # noqa: F401

_TPU_V2, _TPU_V3, _TPU_V4, _TPU_V4_LITE = "TPU v2", "TPU v3", "TPU v4", "TPU v4 lite"
_TPU_V5_LITE, _TPU_V5E, _TPU_V5P, _TPU_V6_LITE = "TPU v5 lite", "TPU v5e", "TPU v5p", "TPU v6 lite"
_TPU_7X, _TPU_7, _TPU_8I = "TPU7x", "TPU7", "TPU8i"
_TRANSPOSE_TRICKS = _torus.CONTIGUOUS
_get_physical_tpu_mesh = _torus.torus_of


def _create_device_mesh_for_nd_torus(physical_mesh: Any, mesh_shape: Any, *, allow_split_physical_axes: bool = False) -> tuple:
    """(the grid, the part of each torus axis that each grid axis takes: one column per grid axis)."""
    grid, parts = _torus.in_torus(mesh_shape, physical_mesh, allow_split_physical_axes)
    return grid, np.array(parts, np.int64).T


def _create_device_mesh_for_nd_torus_splitting_axes(physical_mesh: Any, mesh_shape: Any) -> tuple:
    return _create_device_mesh_for_nd_torus(physical_mesh, mesh_shape, allow_split_physical_axes=True)


def _enumerate_feasible_logical_axis_assignments(physical_mesh_shape: Any, assignment: Any, logical_axis_size: int) -> Any:
    """The possible assignments of the remaining torus axes to a grid axis."""
    left = [side // int(taken) for side, taken in zip(physical_mesh_shape, np.prod(assignment, axis=1))]
    return (np.array(way, np.int64) for way in reversed(list(_torus.divisions(logical_axis_size, left))))


def _generate_logical_mesh(physical_mesh: Any, logical_mesh_shape: Any, assignment: Any) -> Any:
    return _torus.divided(logical_mesh_shape, physical_mesh, assignment.T)


def _prefer_first_logical_axis_assignment(x: Any, y: Any, *, physical_mesh_shape: Any, assignment: Any) -> bool:
    taken = np.prod(assignment, axis=-1)
    return _torus.preference(x, physical_mesh_shape, taken) > _torus.preference(y, physical_mesh_shape, taken)


def _get_prime_factors(x: int) -> list:
    """The prime factors of a number in ascending order."""
    factors, factor = [], 2
    while x > 1:
        while x % factor == 0:
            factors.append(factor)
            x //= factor
        factor += 1
    return factors


__all__ = ["_create_device_mesh_for_nd_torus_splitting_axes", "_enumerate_feasible_logical_axis_assignments", "_generate_logical_mesh",
           "_get_prime_factors", "_prefer_first_logical_axis_assignment"]
explain_missing(__name__)
