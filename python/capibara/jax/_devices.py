"""Devices as Python sees them."""
from capibara import _core


class Device:
    """One device of a backend."""

    def __init__(self, platform, number, kind=None):
        self.platform, self.id, self.process_index, self.local_hardware_id = platform, number, 0, number
        self.device_kind = kind or platform

    def __repr__(self):
        names = {"cpu": "CpuDevice", "gpu": "CudaDevice", "tpu": "TpuDevice"}
        return f"{names.get(self.platform, 'PluginDevice')}(id={self.id})"

    def __str__(self):
        return f"{'cuda' if self.platform == 'gpu' else self.platform}:{self.id}"

    def __eq__(self, other):
        return isinstance(other, Device) and (self.platform, self.id) == (other.platform, other.id)

    def __hash__(self):
        return hash((self.platform, self.id))

    def memory_stats(self):
        """What is known of the device's memory: nothing on the host."""
        return _core.memory_stats(self.platform, self.id)


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
        self.device = device_of(array)
        self.replica_id = 0


def device_of(array):
    """The device that holds an array."""
    return Device(*_core.array_device(array))


def devices(backend=None):
    """The devices of a backend."""
    from capibara.jax._config import find_plugins
    find_plugins()
    name = backend or _core.platform()
    if name not in ("cpu", "reference") and not _core.is_plugin_platform(name):
        raise RuntimeError(f"Unknown backend: '{backend}' requested, but no platforms that are instances of {backend} "
                           "are present. Platforms present are: cpu")
    return [Device(platform, number, kind) for platform, number, kind, _ in _core.devices(name)]


def local_devices(process_index=None, backend=None, host_id=None):
    """The devices of this process."""
    return devices(backend)


def device_count(backend=None):
    """The number of devices."""
    return len(devices(backend))


local_device_count = device_count


def default_backend():
    """The platform that programs run on."""
    return devices()[0].platform


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
