"""The current and peak memory use of devices."""
from capibara import _core
from capibara.jax._devices import devices


def _in_use_and_peak(device):
    device = devices()[0] if device is None else device
    stats = device.memory_stats()
    if stats is None:  # the host: arrays of any size, temporaries of 64 KiB and more
        return _core.host_memory(False)
    return stats["bytes_in_use"], stats.get("peak_bytes_in_use", stats["bytes_in_use"])


def device_memory_allocated(device=None):
    """Bytes of arrays and temporaries on a device, by default the first."""
    return _in_use_and_peak(device)[0]


def device_memory_peak(device=None):
    """Peak bytes in use on a device, by default the first."""
    return _in_use_and_peak(device)[1]
