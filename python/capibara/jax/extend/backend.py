"""jax.extend.backend: what runs programs, platform by platform."""
from capibara import _core
from capibara._modules import explain_missing
from capibara.jax import _devices


class Backend:
    """A platform with its devices."""

    def __init__(self, platform):
        self.platform = platform

    @property
    def platform_version(self):
        return f"capibara {_core.version()}"

    def devices(self):
        return _devices.devices(self.platform)

    def local_devices(self):
        return _devices.local_devices(backend=self.platform)

    def device_count(self):
        return len(self.devices())

    def local_device_count(self):
        return len(self.local_devices())

    def process_index(self):
        return _devices.process_index()

    def live_arrays(self):
        from capibara.jax import live_arrays
        return live_arrays(self.platform)

    def __eq__(self, other):
        return isinstance(other, Backend) and self.platform == other.platform

    def __hash__(self):
        return hash(self.platform)

    def __repr__(self):
        return f"Backend({self.platform!r})"


def get_backend(platform=None):
    """The backend of a platform: the one that programs run on where none is named."""
    return Backend(_devices.devices(platform)[0].platform)


def backends():
    """{platform: backend} of all platforms that are there."""
    found = get_backend()
    return {backend.platform: backend for backend in (Backend("cpu"), found)}


def get_default_device():
    """Where programs run whose arguments are on no particular device."""
    return _devices.local_devices()[0]


explain_missing(__name__)
