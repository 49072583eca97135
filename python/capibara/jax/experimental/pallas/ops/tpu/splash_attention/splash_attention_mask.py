"""Attention masks that are not materialized: slices are computed on demand."""
from collections.abc import Sequence

import numpy as np


def make_causal_mask(shape: Sequence[int], offset: int = 0) -> np.ndarray:
    """Queries see keys up to their own position plus the offset."""
    rows, columns = np.arange(shape[0])[:, None], np.arange(shape[1])[None, :]
    return rows + offset >= columns


def make_local_attention_mask(shape: Sequence[int], window_size: tuple[int | None, int | None], *, offset: int = 0) -> np.ndarray:
    """Queries see keys at most (left, right) positions away."""
    rows, columns = np.arange(shape[0])[:, None] + offset, np.arange(shape[1])[None, :]
    left, right = window_size
    mask = np.ones(shape, bool)
    if left is not None:
        mask &= rows - left <= columns
    if right is not None:
        mask &= rows + right >= columns
    return mask


class Mask:
    """A mask of shape [queries, keys], read by slices."""

    shape: tuple

    def _whole(self):
        raise NotImplementedError

    def __getitem__(self, index):
        return self._whole()[index]

    def __or__(self, other):
        self._check(other)
        return NumpyMask(self[:, :] | other[:, :])

    def __and__(self, other):
        self._check(other)
        return NumpyMask(self[:, :] & other[:, :])

    def _check(self, other):
        if self.shape != other.shape:
            raise ValueError(f"Invalid shape for other: {other.shape}, expected: {self.shape}")

    def __bool__(self):
        raise NotImplementedError("a mask has no truth value: combine masks by | and &, not by or and and")


class NumpyMask(Mask):
    """A mask stored as an array of booleans."""

    def __init__(self, array: np.ndarray) -> None:
        if array.ndim != 2 or array.dtype != np.bool_:
            raise ValueError(f"Expected a 2-dimensional array of booleans, instead got: {array.ndim} dimensions of {array.dtype}")
        self.array, self.shape = array, array.shape

    def _whole(self):
        return self.array

    def __eq__(self, other):
        return isinstance(other, NumpyMask) and np.array_equal(self.array, other.array)

    def __hash__(self):
        return hash((type(self), self.array.tobytes()))


class FullMask(Mask):
    """Every query sees every key."""

    def __init__(self, _shape: Sequence[int]) -> None:
        self.shape = tuple(_shape)

    def _whole(self):
        return np.ones(self.shape, bool)


class CausalMask(Mask):
    """Queries see keys up to their own position plus the offset."""

    def __init__(self, shape: Sequence[int], offset: int = 0, shard_count: int = 1) -> None:
        self.shape, self.offset = tuple(shape), offset

    def _whole(self):
        return make_causal_mask(self.shape, self.offset)


class LocalMask(Mask):
    """Queries see keys at most (left, right) positions away."""

    def __init__(self, shape: Sequence[int], window_size: tuple[int | None, int | None], offset: int, shard_count: int = 1) -> None:
        self.shape, self.window_size, self.offset = tuple(shape), window_size, offset

    def _whole(self):
        return make_local_attention_mask(self.shape, self.window_size, offset=self.offset)


class MultiHeadMask(Mask):
    """One mask for each head."""

    def __init__(self, masks: Sequence[Mask]) -> None:
        self.masks = tuple(masks)
        if not self.masks:
            raise ValueError("Unsupported empty tuple of masks")
        if any(mask.shape != self.masks[0].shape for mask in self.masks):
            raise ValueError("Unexpected mask shape: all heads must have masks of one shape")
        self.shape = (len(self.masks),) + tuple(self.masks[0].shape)

    def _whole(self):
        return np.stack([mask[:, :] for mask in self.masks])
