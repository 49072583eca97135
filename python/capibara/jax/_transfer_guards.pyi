"""Types of transfer guards between host and devices."""
from contextlib import AbstractContextManager

def transfer_guard(value: str) -> AbstractContextManager[None]:
    """In all directions: 'allow', 'log', 'disallow', 'log_explicit' or 'disallow_explicit'."""
def transfer_guard_host_to_device(value: str) -> AbstractContextManager[None]:
    """From the host to devices."""
def transfer_guard_device_to_device(value: str) -> AbstractContextManager[None]:
    """From device to device."""
def transfer_guard_device_to_host(value: str) -> AbstractContextManager[None]:
    """From devices to the host."""
