"""Devices as Python sees them."""
import gc
import os
import re
import sys

from capibara import _core

_search_begun = False  # of plugins
_xla_flags = [os.environ.get("XLA_FLAGS", "")]  # as read by the core; empty once devices have been listed


class Memory:
    """A kind of memory that a device addresses."""

    def __init__(self, device, kind):
        self._device, self.kind = device, kind

    @property
    def platform(self):
        return self._device.platform

    @property
    def process_index(self):
        return self._device.process_index

    def addressable_by_devices(self):
        return [self._device]

    def __eq__(self, other):
        return isinstance(other, Memory) and (self._device, self.kind) == (other._device, other.kind)

    def __hash__(self):
        return hash((self._device, self.kind))

    def __repr__(self):
        return f"{self.kind.upper()}_{self._device.id}"


class Device:
    """One device of a backend."""

    def __init__(self, platform, number, kind=None, process_index=0, addressable=True, memories=("device",), default_memory="device"):
        self.platform, self.id, self.process_index, self.local_hardware_id = platform, number, process_index, number
        self.device_kind, self.addressable = kind or platform, addressable
        self._memories, self._default_memory = tuple(memories), default_memory or (memories[0] if memories else "device")

    @property
    def _placement_platform(self):
        return self.platform

    @property
    def host_id(self):
        return self.process_index

    @property
    def client_process(self):
        return process_index()

    @property
    def client(self):
        """The backend that the device belongs to."""
        return Backend(self.platform)

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
        """Statistics of the device's memory; None if there are none, as on the host."""
        return _core.memory_stats(self.platform, self.id)

    def addressable_memories(self):
        """The kinds of memory that arrays of this device may be placed in."""
        return [Memory(self, kind) for kind in self._memories]

    def default_memory(self):
        """The memory in which arrays are placed by default."""
        return Memory(self, self._default_memory)

    def memory(self, kind):
        """The memory of a kind."""
        if kind not in self._memories:
            raise ValueError(f"Could not find memory addressable by device {self.device_kind}. Device {self.device_kind} can address the "
                             f"following memory kinds: {', '.join(self._memories)}. Got memory kind: {kind}")
        return Memory(self, kind)


class Backend:
    """A platform with its devices."""

    runtime_type = "capibara"

    def __init__(self, platform):
        self.platform = platform

    @property
    def platform_version(self):
        return f"capibara {_core.version()}"

    def devices(self):
        return devices(self.platform)

    def local_devices(self):
        return local_devices(backend=self.platform)

    def device_count(self):
        return len(self.devices())

    def local_device_count(self):
        return len(self.local_devices())

    def process_index(self):
        return process_index()

    def live_arrays(self):
        return live_arrays(self.platform)

    def __eq__(self, other):
        return isinstance(other, Backend) and self.platform == other.platform

    def __hash__(self):
        return hash(self.platform)

    def __repr__(self):
        return f"Backend({self.platform!r})"


_known = {}  # {row of the core: Device}, so that each device is one object


def live_arrays(platform=None):
    """The arrays that Python holds on a platform, by default on the default one."""
    own = devices(platform)[0].platform
    return [x for x in gc.get_objects() if isinstance(x, _core.ArrayImpl) and not x.is_deleted() and device_of(x).platform == own]


def device_of(array):
    """The device that holds an array."""
    platform, number = _core.array_device(array)
    if (platform, number) == ("cpu", 0) and _core.process_group()[1] > 1:  # not placed explicitly: the first device of this process
        return local_devices(backend="cpu")[0]
    for device in devices(_called(platform)):
        if (device.platform, device.id) == (platform, number):
            return device
    return Device(platform, number)


def find_plugins():
    """Passes the package folders of this interpreter to the core, which searches them for plugins."""
    global _search_begun
    if not _search_begun:
        _search_begun = True
        _core.add_package_folders([folder for folder in sys.path if folder.endswith(("site-packages", "dist-packages"))])


def _read_xla_flags():
    """Reads XLA_FLAGS, which may request several CPU devices until devices are first listed: programs set it after their imports."""
    read, flags = _xla_flags.pop(), os.environ.get("XLA_FLAGS", "")
    counts = re.findall(r"--xla_force_host_platform_device_count=(\S*)", flags)
    if flags == read or not counts or os.environ.get("JAX_NUM_CPU_DEVICES") or _core.config_values()["num_cpu_devices"] != 1:
        return
    if not counts[-1].isdigit() or int(counts[-1]) < 1:
        raise ValueError(f"XLA_FLAGS: the number of CPU devices must be a positive number, got {counts[-1]!r}")
    _core.config_update("num_cpu_devices", int(counts[-1]))


_PACKAGES = {"gpu": "jax-cuda13-pjrt", "cuda": "jax-cuda13-pjrt", "tpu": "libtpu", "xla_cpu": "xla-cpu-pjrt"}
_LOOKED_AT = "no PJRT plugin for it was found."  # in the core's error, before the paths


def _unknown_backend(backend):
    """jax's message for a platform that is absent, with the platforms that programs can run on."""
    here = sorted({platform for platform, *_ in _core.devices(_core.platform())})
    if backend == "gpu":
        return ("Unknown backend: 'gpu' requested, but no platforms that are instances of gpu are present. Platforms present are: "
                f"{', '.join(here)}")
    return f"Unknown backend {backend}. Available backends are {here}"


def devices(backend=None):
    """The devices of a backend, including those of other processes."""
    if _xla_flags:
        _read_xla_flags()
    find_plugins()
    name = backend or _core.platform()
    if name.split(",")[0] not in ("cpu", "reference") and not _core.is_plugin_platform(name.split(",")[0]):
        raise RuntimeError(_unknown_backend(backend))
    try:
        rows = _core.devices(name)
    except RuntimeError as error:
        if backend is None or _LOOKED_AT not in str(error):
            raise
        paths = str(error).partition(_LOOKED_AT)[2].partition("\nHint:")[0]
        raise RuntimeError(f"{_unknown_backend(backend)}. N{_LOOKED_AT[1:]}{paths}\nHint: install "
                           f"{_PACKAGES.get(name, 'a package with its plugin')}, or name the plugin's file in CAPIBARA_PLUGIN; "
                           "jax.devices() lists the devices that there are.") from None
    listed = []
    for platform, number, kind, process, addressable, memories, default_memory in rows:
        key = (platform, number, kind, process)
        if key not in _known:
            _known[key] = Device(platform, number, kind, process, addressable, memories, default_memory)
        listed.append(_known[key])
    return listed


def local_devices(process_index=None, backend=None, host_id=None):
    """The devices of this process, or of another one; `host_id` is an older name of process_index."""
    if process_index is None:
        process_index = host_id
    if process_index is None:
        return [device for device in devices(backend) if device.addressable]
    return [device for device in devices(backend) if device.process_index == process_index]


def device_count(backend=None):
    """The number of devices of all processes."""
    return len(devices(backend))


def local_device_count(backend=None):
    """The number of this process's devices."""
    return len(local_devices(backend=backend))


def default_backend():
    """The platform that programs run on."""
    return devices()[0].platform


def process_count(backend=None):
    """The number of processes in this program."""
    _require_platform(backend)
    return _core.process_group()[1]


def process_index(backend=None):
    """The index of this process."""
    _require_platform(backend)
    return _core.process_group()[0]


def process_indices(backend=None):
    """The indices of all processes."""
    return list(range(process_count(backend)))


def _require_platform(backend):
    """Raises if the platform does not exist; otherwise all platforms have the same processes."""
    if backend is not None:
        devices(backend)


def target_of(device, backend, operation):
    """(platform, number) of the device named by device= or backend=; None without either."""
    if device is not None and backend is not None:
        raise ValueError(f"can't specify both a device and a backend for {operation}, got device={device} and backend={backend}.")
    if backend is not None:
        device = local_devices(backend=backend)[0]
    if device is None:
        return None
    if not isinstance(device, Device):
        raise TypeError(f"{operation}: device must be a Device, got {device!r}")
    platform = device.platform
    if device not in devices("cpu" if platform == "cpu" else _called(platform)):
        raise ValueError(f"{operation}: no such device: {device!r}; there are {devices(_called(platform))}")
    return platform, device.id


def _called(platform):
    """The name under which a platform's devices are requested: a plugin may have been selected as 'pjrt'."""
    own = _core.platform().split(",")[0]
    return own if _core.is_plugin_platform(own) and devices(own)[0].platform == platform else platform
