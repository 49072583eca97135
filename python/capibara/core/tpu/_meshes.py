"""Meshes from a record or from keywords."""
import dataclasses
import math
from typing import Any

import capibara.jax as jax
from capibara import _tracebacks


@dataclasses.dataclass
class MeshConfig:
    """The sizes and names of a mesh's axes, and its devices: by default all."""

    mesh_shape: tuple
    axis_names: tuple
    devices: Any = None


def create_mesh(config=None, *, mesh_shape=None, axis_names=None, devices=None):
    """A mesh from a MeshConfig, or from sizes and names; trailing sizes of 1 need no name."""
    if (config is None) == (mesh_shape is None):
        raise TypeError("create_mesh: takes either a MeshConfig or mesh_shape= and axis_names=")
    config = config or MeshConfig(mesh_shape, axis_names, devices)
    names = (config.axis_names,) if isinstance(config.axis_names, str) else tuple(config.axis_names or ())
    sizes = _named_sizes(tuple(int(size) for size in config.mesh_shape), names)
    chosen = list(jax.devices() if config.devices is None else config.devices)
    count = math.prod(sizes)
    if count > len(chosen):
        raise ValueError(f"create_mesh: a mesh of {' x '.join(map(str, sizes))} needs {count} devices, got {len(chosen)}; on the CPU, "
                         f"JAX_NUM_CPU_DEVICES={count} makes as many")
    return jax.make_mesh(sizes, names, (jax.sharding.AxisType.Auto,) * len(names), devices=chosen)


def _named_sizes(sizes, names):
    if len(names) > len(sizes) or any(size != 1 for size in sizes[len(names):]):
        raise ValueError(f"create_mesh: every axis needs a name and a size, got mesh_shape={sizes} and axis_names={names}; only trailing "
                         "sizes of 1 may go without a name")
    if any(size < 1 for size in sizes):
        raise ValueError(f"create_mesh: sizes must be at least 1, got mesh_shape={sizes}")
    return sizes[:len(names)]


_tracebacks.guard(__name__)
