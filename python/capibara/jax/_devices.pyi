"""Types of devices."""
from collections.abc import Sequence
from typing import Any

class Memory:
    """A kind of memory that a device addresses."""

    kind: str
    @property
    def platform(self) -> str: ...
    @property
    def process_index(self) -> int: ...
    def addressable_by_devices(self) -> list[Device]: ...

class Device:
    """One device of a backend."""

    platform: str
    id: int
    process_index: int
    local_hardware_id: int
    device_kind: str
    addressable: bool
    @property
    def host_id(self) -> int: ...
    @property
    def client_process(self) -> int: ...
    @property
    def client(self) -> Any: ...
    def memory_stats(self) -> dict[str, int] | None: ...
    def addressable_memories(self) -> list[Memory]: ...
    def default_memory(self) -> Memory: ...
    def memory(self, kind: str) -> Memory: ...

def devices(backend: str | None = None) -> list[Device]:
    """The devices of a backend, including those of other processes."""
def local_devices(process_index: int | None = None, backend: str | None = None, host_id: int | None = None) -> list[Device]:
    """The devices of this process, or of another one; `host_id` is an older name of process_index."""
def device_count(backend: str | None = None) -> int:
    """The number of devices of all processes."""
def local_device_count(backend: str | None = None) -> int:
    """The number of this process's devices."""
def default_backend() -> str:
    """The platform that programs run on."""
def process_count(backend: str | None = None) -> int:
    """The number of processes in this program."""
def process_index(backend: str | None = None) -> int:
    """The index of this process."""
def process_indices(backend: str | None = None) -> list[int]:
    """The indices of all processes."""
def device_of(array: Any) -> Device:
    """The device that holds an array."""
