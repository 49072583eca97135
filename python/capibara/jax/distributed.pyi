"""Types of jax.distributed."""
from collections.abc import Sequence

def initialize(
    coordinator_address: str | None = None, num_processes: int | None = None, process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None, cluster_detection_method: str | None = None, initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 10, shutdown_timeout_seconds: int = 300, coordinator_bind_address: str | None = None,
    slice_index: int | None = None, partition_index: int | None = None, *, collective_timeout_seconds: float | None = None
) -> None:
    """Connects to the other processes. Call it once, before any computation."""
def is_initialized() -> bool:
    """True if this process is connected to the others."""
def shutdown() -> None:
    """Waits for the other processes and disconnects."""
