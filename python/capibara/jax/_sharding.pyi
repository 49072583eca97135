"""Types of shardings, shards and layouts."""
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from capibara._core import Array
from capibara._stub_types import Shape
from capibara.jax._axes import AbstractMesh
from capibara.jax._devices import Device
from capibara.jax._mesh import Mesh, PartitionSpec

class Sharding:
    """The placement of an array on devices."""

    @property
    def device_set(self) -> set[Device]: ...
    @property
    def memory_kind(self) -> str | None: ...
    @property
    def num_devices(self) -> int: ...
    @property
    def addressable_devices(self) -> set[Device]: ...
    @property
    def is_fully_addressable(self) -> bool: ...
    @property
    def is_fully_replicated(self) -> bool: ...
    def shard_shape(self, global_shape: Shape) -> tuple[int, ...]: ...
    def devices_indices_map(self, global_shape: Shape) -> dict[Device, tuple[slice, ...]]: ...
    def addressable_devices_indices_map(self, global_shape: Shape) -> dict[Device, tuple[slice, ...]]: ...
    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool: ...
    def with_memory_kind(self, kind: str) -> Sharding: ...

class DuplicateSpecError(Exception):
    """An axis of a mesh cannot split two dimensions."""

class NamedSharding(Sharding):
    """A mesh, and which of its axes split which dimension."""

    mesh: Mesh
    spec: PartitionSpec
    def __new__(cls, mesh: Mesh | AbstractMesh, spec: PartitionSpec | Sequence[Any] | None = None, *,
                memory_kind: str | None = None) -> NamedSharding: ...
    def __init__(self, mesh: Mesh | AbstractMesh, spec: PartitionSpec | Sequence[Any], *, memory_kind: str | None = None) -> None: ...
    def with_memory_kind(self, kind: str) -> NamedSharding: ...

class SingleDeviceSharding(Sharding):
    """The sharding of an array on one device."""

    def __init__(self, device: Device, *, memory_kind: str | None = None) -> None: ...
    def with_memory_kind(self, kind: str) -> SingleDeviceSharding: ...

class Shard:
    """The shard of an array on one device."""

    device: Device
    index: tuple[slice, ...]
    replica_id: int
    data: Array
    def __init__(self, device: Device, index: tuple[slice, ...], replica_id: int, data: Array) -> None: ...

@dataclass(frozen=True)
class Layout:
    """The order of dimensions in memory, slowest first; tiles are for devices with tiled layouts."""

    major_to_minor: tuple[int, ...]
    tiling: tuple[Any, ...] | None = None
    sub_byte_element_size_in_bits: int = 0

@dataclass(frozen=True)
class Format:
    """A layout and a sharding; None where unspecified."""

    layout: Layout | None = None
    sharding: object = None
