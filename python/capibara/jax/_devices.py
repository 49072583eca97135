"""Devices as Python sees them."""
from capibara import _core


class Device:
    """One device of a backend."""

    def __init__(self, platform, number):
        self.platform, self.id, self.process_index, self.local_hardware_id = platform, number, 0, number
        self.device_kind = platform

    def __repr__(self):
        return f"CpuDevice(id={self.id})"

    def __str__(self):
        return f"cpu:{self.id}"

    def __eq__(self, other):
        return isinstance(other, Device) and (self.platform, self.id) == (other.platform, other.id)

    def __hash__(self):
        return hash((self.platform, self.id))

    def memory_stats(self):
        """What is known of the device's memory: nothing on the host."""
        return None


class SingleDeviceSharding:
    """The layout of an array that lies on one device."""

    def __init__(self, device, *, memory_kind=None):
        self._device, self.memory_kind = device, memory_kind or "device"

    @property
    def device_set(self):
        return {self._device}

    is_fully_replicated = is_fully_addressable = True

    def __eq__(self, other):
        return isinstance(other, SingleDeviceSharding) and self._device == other._device

    def __hash__(self):
        return hash(self._device)

    def __repr__(self):
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind={self.memory_kind})"


class Shard:
    """The part of an array on one device: here the whole array."""

    def __init__(self, array):
        self.data = array
        self.index = (slice(None),) * array.ndim
        self.device = Device("cpu", 0)
        self.replica_id = 0


def devices(backend=None):
    """The devices of a backend."""
    if backend not in (None, "cpu", "reference"):
        raise RuntimeError(f"Unknown backend: '{backend}' requested, but no platforms that are instances of {backend} "
                           "are present. Platforms present are: cpu")
    return [Device("cpu", i) for i in range(_core.config_values()["num_cpu_devices"])]


def local_devices(process_index=None, backend=None, host_id=None):
    """The devices of this process."""
    return devices(backend)


def device_count(backend=None):
    """The number of devices."""
    return len(devices(backend))


local_device_count = device_count


def default_backend():
    """The platform that programs run on."""
    return "cpu"


def process_count(backend=None):
    return 1


def process_index(backend=None):
    return 0


def process_indices(backend=None):
    return [0]


def check_target(device, backend):
    """Refuses devices and backends that do not exist."""
    if backend is not None:
        devices(backend)
    if device is not None and isinstance(device, Device) and device not in devices():
        raise ValueError(f"no such device: {device!r}; there are {devices()}")
