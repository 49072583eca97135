"""jax.experimental.layout: the order of an array's dimensions in memory, together with how it lies on devices."""
from typing import NamedTuple

from capibara._modules import explain_missing


class Layout(NamedTuple):
    """The order of dimensions in memory, the slowest first; tiles are for devices that have them."""

    major_to_minor: tuple
    tiling: tuple | None = None
    sub_byte_element_size_in_bits: int = 0


class Format(NamedTuple):
    """A layout and a sharding; None for what is left open."""

    layout: Layout | None = None
    sharding: object = None


explain_missing(__name__)
