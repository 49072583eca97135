"""The effect of a program on keys: which it consumes, creates and forwards."""
import numpy as np


class _Masked:
    """Elements of one operand or result: all of them unless a mask is set."""

    __slots__ = ("idx", "mask")

    def __init__(self, idx, mask=True):
        if not isinstance(mask, bool):
            mask = np.array(mask, bool)
            mask.flags.writeable = False
        object.__setattr__(self, "idx", idx)
        object.__setattr__(self, "mask", mask)

    def __setattr__(self, name, value):
        raise ValueError(f"{type(self).__name__} is immutable: {name} cannot be set")

    def _key(self):
        mask = np.asarray(self.mask)
        if mask.all() or not mask.any():
            return (type(self).__name__, self.idx, bool(mask.all()))
        return (type(self).__name__, self.idx, mask.shape, mask.tobytes())

    def __eq__(self, other):
        return isinstance(other, _Masked) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        return f"{type(self).__name__}({self.idx})" if self.mask is True else f"{type(self).__name__}({self.idx}, {self.mask})"


class Sink(_Masked):
    """An operand whose keys are consumed."""


class Source(_Masked):
    """A result whose keys are new."""


class Forward:
    """A result that is a forwarded operand."""

    __slots__ = ("in_idx", "out_idx")

    def __init__(self, in_idx, out_idx):
        object.__setattr__(self, "in_idx", in_idx)
        object.__setattr__(self, "out_idx", out_idx)

    def __setattr__(self, name, value):
        raise ValueError(f"Forward is immutable: {name} cannot be set")

    def __eq__(self, other):
        return isinstance(other, Forward) and (self.in_idx, self.out_idx) == (other.in_idx, other.out_idx)

    def __hash__(self):
        return hash(("Forward", self.in_idx, self.out_idx))

    def __repr__(self):
        return f"Forward({self.in_idx}, {self.out_idx})"


class KeyReuseSignature:
    """The sinks, sources and forwards of a primitive, a program or a function."""

    def __init__(self, *parts):
        self.sinks = frozenset(p for p in parts if isinstance(p, Sink))
        self.sources = frozenset(p for p in parts if isinstance(p, Source))
        self.forwards = frozenset(p for p in parts if isinstance(p, Forward))

    def _parts(self):
        return self.sinks | self.sources | self.forwards

    def __eq__(self, other):
        return isinstance(other, KeyReuseSignature) and self._parts() == other._parts()

    def __hash__(self):
        return hash(self._parts())

    def __repr__(self):
        return f"KeyReuseSignature{tuple(sorted(self._parts(), key=repr))}"
