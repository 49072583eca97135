"""A job of several hosts, as one record."""
import dataclasses

import capibara.jax as jax
from capibara import _tracebacks


@dataclasses.dataclass
class MultiHostConfig:
    """The number of hosts, the index of this one, and the coordinator's address (HOST:PORT of the first)."""

    num_hosts: int
    host_id: int
    coordinator_address: str | None = None

    def __post_init__(self):
        if self.num_hosts < 1:
            raise ValueError(f"MultiHostConfig: num_hosts must be at least 1, got {self.num_hosts}")
        if not 0 <= self.host_id < self.num_hosts:
            raise ValueError(f"MultiHostConfig: host_id must be from 0 to {self.num_hosts - 1}, got {self.host_id}")
        if self.num_hosts > 1 and not self.coordinator_address:
            raise ValueError(f"MultiHostConfig: {self.num_hosts} hosts need a coordinator_address, such as '10.0.0.1:1234', to meet at")

    def setup(self):
        """Connects to the other hosts; does nothing for a single host. Call it once, before any computation."""
        if self.num_hosts > 1:
            jax.distributed.initialize(self.coordinator_address, self.num_hosts, self.host_id)
        return self


_tracebacks.guard(__name__)
