"""Layouts: the order of an array's dimensions in memory."""
import dataclasses


class AutoLayout:
    """Stands for a layout that the compiler chooses."""

    def __repr__(self):
        return "AUTO"


@dataclasses.dataclass(frozen=True)
class Layout:
    """The order of dimensions in memory, the slowest first; tiles are for devices that have them."""

    major_to_minor: tuple
    tiling: tuple | None = None
    sub_byte_element_size_in_bits: int = 0

    def check_compatible_aval(self, aval_shape):
        """Raises where arrays of this shape have another number of dimensions."""
        if len(self.major_to_minor) != len(aval_shape):
            raise ValueError(f"Length of major_to_minor and the rank of the value should match. Got "
                             f"major_to_minor={self.major_to_minor} and "
                             f"shape={tuple(aval_shape)}")


Layout.AUTO = AutoLayout()
