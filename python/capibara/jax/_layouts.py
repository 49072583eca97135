"""Layouts: the order of an array's dimensions in memory."""
from capibara._records import FrozenRecord


class AutoLayout:
    """A layout chosen by the compiler."""

    def __repr__(self):
        return "AUTO"


class Layout(FrozenRecord):
    """The order of dimensions in memory, slowest first; tiles are for devices with tiled layouts."""

    __match_args__ = ("major_to_minor", "tiling", "sub_byte_element_size_in_bits")

    def __init__(self, major_to_minor, tiling=None, sub_byte_element_size_in_bits=0):
        super().__init__(major_to_minor, tiling, sub_byte_element_size_in_bits)

    def check_compatible_aval(self, aval_shape):
        """Raises if this shape has a different number of dimensions."""
        if len(self.major_to_minor) != len(aval_shape):
            raise ValueError(f"Length of major_to_minor and the rank of the value should match. Got "
                             f"major_to_minor={self.major_to_minor} and "
                             f"shape={tuple(aval_shape)}")


Layout.AUTO = AutoLayout()
