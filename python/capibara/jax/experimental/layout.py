"""jax.experimental.layout: the order of an array's dimensions in memory, and its placement on devices.

Arrays are row-major: device_put and jit refuse any other layout.
"""
from capibara._modules import explain_missing
from capibara.jax._placing import with_layout_constraint  # noqa: F401
from capibara.jax._sharding import Format, Layout  # noqa: F401

explain_missing(__name__)
