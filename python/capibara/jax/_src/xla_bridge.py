"""jax._src.xla_bridge: the backends that run programs."""
from capibara._modules import explain_missing
from capibara.jax.extend.backend import backends, get_backend  # noqa: F401

_backends = {}  # XLA clients: none
_ALIASES = {"gpu": ("cuda", "rocm")}


def canonicalize_platform(platform: str) -> str:
    """The name of a platform that is present, for 'gpu' and its like; other names are returned as they are."""
    if platform not in _ALIASES:
        return platform
    present = backends()
    for name in _ALIASES[platform]:
        if name in present:
            return name
    raise RuntimeError(f"Unknown backend: '{platform}' requested, but no platforms that are instances of {platform} are present. "
                       f"Platforms present are: {','.join(present)}")


explain_missing(__name__)
