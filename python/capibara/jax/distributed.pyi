"""Types of jax.distributed."""
from collections.abc import Sequence

def initialize(
    coordinator_address: str | None = None, num_processes: int | None = None, process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None, *, initialization_timeout: int = 300, coordinator_bind_address: str | None = None
) -> None:
    """Meets the other processes at the coordinator's HOST:PORT, where process 0 serves a key-value store."""
def is_initialized() -> bool:
    """Whether this process has met the others."""
def shutdown() -> None:
    """Waits for the others and leaves."""
