"""jax.extend.backend: the backends of each platform."""
from capibara._modules import explain_missing
from capibara.jax import _devices
from capibara.jax._devices import Backend


def get_backend(platform=None):
    """The backend of a platform, by default the one that programs run on."""
    return Backend(_devices.devices(platform)[0].platform)


def backends():
    """{platform: backend} for all platforms present."""
    found = get_backend()
    return {backend.platform: backend for backend in (Backend("cpu"), found)}


def get_default_device():
    """The device for programs with uncommitted arguments."""
    return _devices.local_devices()[0]


explain_missing(__name__)
