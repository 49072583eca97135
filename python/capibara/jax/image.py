"""jax.image: resizing of images."""
from capibara._modules import fill as _fill
from capibara._types import ResizeMethod  # noqa: F401

_fill(__name__, "image")
