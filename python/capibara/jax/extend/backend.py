"""jax.extend.backend: what runs programs, platform by platform."""
from capibara._modules import explain_missing
from capibara.jax import _devices
from capibara.jax._devices import Backend


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
