"""Extended dtypes: PRNG keys and float0, which NumPy does not have."""
import numpy as np

float0 = np.dtype([("float0", np.void, 0)])


class extended(np.generic):
    """The scalar type of all extended dtypes, for issubdtype."""


class prng_key(extended):
    """The scalar type of PRNG keys, for issubdtype."""


class KeyType:
    """The dtype of an array of PRNG keys."""

    type = prng_key
    kind = "V"

    def __init__(self, name, position):
        self.name = name
        self._position = position
        self.itemsize = 8 if name == "key<fry>" else 16

    def __repr__(self):
        return self.name

    __str__ = __repr__

    def __hash__(self):
        return hash(("KeyType", self.name))

    def __eq__(self, other):
        return isinstance(other, KeyType) and other.name == self.name
