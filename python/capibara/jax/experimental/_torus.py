"""The order of TPU devices in a mesh, as in jax.experimental.mesh_utils: rings on small boards, torus axes on larger slices."""
import itertools
import math
from typing import Any, Iterator, Sequence

# Walks over the chips of a small board, numbered with x fastest, in which consecutive chips are neighbours.
_SQUARE = (0, 1, 3, 2)  # 2x2
_BOARD = (0, 1, 2, 3, 7, 6, 5, 4)  # 4x2
_LARGE_BOARD = (0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 15, 14, 13, 12, 8, 4)  # 4x4
_CUBE = (0, 1, 3, 2, 6, 7, 5, 4)  # 2x2x2
_INTERLEAVED_CUBE = (0, 4, 2, 6, 1, 5, 3, 7)  # 2x2x2 of v5e
_CORES = (0, 1, 2, 3, 6, 7, 4, 5)  # eight cores of four chips, two on each
# For contiguous_submeshes: the order of torus axes for these meshes.
CONTIGUOUS = {(2, 2, 1): {(2, 2): (0, 1, 2)}, (2, 2, 4): {(4, 4): (0, 1, 2)}, (4, 4, 4): {(16, 4): (0, 2, 1)},
              (4, 8, 8): {(64, 4): (0, 2, 1), (4, 64): (0, 2, 1)}, (8, 8, 8): {(64, 8): (0, 2, 1)},
              (8, 16, 16): {(256, 8): (0, 2, 1), (8, 256): (0, 2, 1)}}


def _by_coordinates(devices: Sequence[Any]) -> list:
    return sorted(devices, key=lambda device: tuple(reversed(device.coords)))


def _ring(shape: Sequence[int], devices: Sequence[Any]) -> list | None:
    """The devices of a small board in its special order; None for other slices."""
    kind, count = devices[-1].device_kind, len(devices)
    bounds = tuple(size + 1 for size in max(device.coords for device in devices))
    if kind in ("TPU v2", "TPU v3"):
        if count == 8:
            return [devices[i] for i in _CORES]
        boards = range(0, count, 8) if shape[-1] == 8 else ()
        return [devices[first + i] for first in boards for i in _CORES] or list(devices)
    if kind in ("TPU v4 lite", "TPU8i"):
        return [devices[i] for i in _SQUARE] if count == 4 else None
    if kind in ("TPU v5 lite", "TPU v6 lite"):
        walk = None
        if bounds == (2, 2, 1) and count == 4:
            walk = _SQUARE
        elif count == 8:
            walk = _INTERLEAVED_CUBE if bounds == (2, 2, 2) else _BOARD
        elif bounds == (4, 4, 1) and count == 16 and max(shape) == 16:
            walk = _LARGE_BOARD
        placed = _by_coordinates(devices)
        return [placed[i] for i in walk] if walk else None
    if kind == "TPU v5p" and bounds == (2, 2, 2) and count == 8:
        placed = _by_coordinates(devices)
        return [placed[i] for i in _CUBE]
    if kind in ("TPU7x", "TPU7") and count % 8 == 0 and count <= 32 and max(torus_of(devices).shape[:2]) <= 2:
        return [devices[first + i] for first in range(0, count, 8) for i in _CORES]
    return None


def torus_of(devices: Sequence[Any]) -> Any:
    """The devices in an array by coordinates; if a chip has several devices, its cores are the last axis."""
    import numpy as np
    places = [(*device.coords, device.core_on_chip) for device in devices]
    low = [min(axis) for axis in zip(*places)]
    sides = [max(axis) - least + 1 for axis, least in zip(zip(*places), low)]
    kind = devices[0].device_kind
    if sides[3] > 1 and kind not in ("TPU v2", "TPU v3", "TPU v5p", "TPU7x", "TPU7", "TPU8i"):
        raise AssertionError(f"create_device_mesh: {kind} needs one device for each chip (megacore), got {sides[3]}")
    grid = np.empty(sides, dtype=object)
    for place, device in zip(places, devices):
        grid[tuple(at - least for at, least in zip(place, low))] = device
    if math.prod(sides) != len(devices) or any(device is None for device in grid.flat):
        raise AssertionError("create_device_mesh: the coordinates of the devices are not a contiguous cuboid of the torus")
    if kind in ("TPU v2", "TPU v3"):
        return grid[:, :, 0]
    return grid if kind in ("TPU7x", "TPU7", "TPU8i") or sides[3] > 1 else grid[..., 0]


def _axes_of(shape: Sequence[int], sides: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The torus axes for each mesh axis; the last mesh axis chooses first, and takes as many as it can."""
    free, chosen = dict(enumerate(sides)), {}
    for axis in reversed(range(len(shape))):
        subsets = (subset for count in range(len(sides), 0, -1) for subset in itertools.combinations(range(len(sides)), count))
        fits = (subset for subset in subsets if math.prod(free.get(i, 0) for i in subset) == shape[axis])
        chosen[axis] = next(fits, ())
        if not chosen[axis] and shape[axis] > 1:
            raise NotImplementedError(
                f"create_device_mesh: axis {axis} of size {shape[axis]} is not a product of the remaining axes of the torus "
                f"{'x'.join(map(str, sides))} ({'x'.join(map(str, free.values())) or 'none'} left); (4, 16) "
                "fits a 4x4x4 slice since 4 = 4 and 16 = 4 x 4; allow_split_physical_axes=True divides axes of the torus")
        for i in chosen[axis]:
            del free[i]
    return [chosen[axis] for axis in range(len(shape))]


def divisions(size: int, free: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All factorizations of a size into one divisor of each of these numbers."""
    if not free:
        if size == 1:
            yield ()
        return
    for part in range(1, min(size, free[0]) + 1):
        if size % part == 0 and free[0] % part == 0:
            yield from ((part, *rest) for rest in divisions(size // part, free[1:]))


def preference(division: Sequence[int], sides: Sequence[int], taken: Sequence[int]) -> tuple:
    """A score, higher is better, for splitting a mesh axis over torus axes, parts of which are taken."""
    whole = [part for part, side in zip(division, sides) if part == side]
    shared = math.prod(part for part, other in zip(division, taken) if other > 1)
    return math.prod(whole), sum(part > 1 for part in whole), shared, tuple(division)


def _parts_of(shape: Sequence[int], sides: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The part of each torus axis that each mesh axis takes; the last mesh axis chooses first.

    Preferred are whole axes, as large and then as many as possible, then axes partly taken by others, then the first axes.
    """
    taken, parts = [1] * len(sides), {}
    for axis in reversed(range(len(shape))):
        ways = divisions(shape[axis], [side // other for side, other in zip(sides, taken)])
        parts[axis] = max(ways, key=lambda division: preference(division, sides, taken))
        taken = [other * part for other, part in zip(taken, parts[axis])]
    return [parts[axis] for axis in range(len(shape))]


def divided(shape: Sequence[int], torus: Any, parts: Sequence[Sequence[int]]) -> Any:
    """The torus as a grid whose axes share torus axes; of two mesh axes on the same torus axis, the later is the inner."""
    cut = torus.reshape([part[side] for side in range(torus.ndim) for part in parts])
    axes = [side * len(parts) + axis for axis in range(len(parts)) for side in range(torus.ndim)]
    return cut.transpose(axes).reshape(tuple(shape))


def torus_mesh(shape: Sequence[int], devices: Sequence[Any], contiguous_submeshes: bool = False,
               allow_split_physical_axes: bool = False) -> Any:
    """The TPU devices of one slice as a grid of this shape."""
    import numpy as np
    ring = _ring(shape, devices)
    if ring is not None:
        grid = np.empty(len(ring), dtype=object)
        grid[:] = ring
        return grid.reshape(tuple(shape))
    torus = torus_of(devices)
    if contiguous_submeshes:
        torus = _contiguous(shape, torus)
    return in_torus(shape, torus, allow_split_physical_axes)[0]


def _contiguous(shape: Sequence[int], torus: Any) -> Any:
    """The torus transposed so that the devices of each host are a block of the mesh."""
    known, expected = CONTIGUOUS.get(torus.shape), tuple(size for size in shape if size != 1)
    if known is None:
        raise ValueError(f"create_device_mesh cannot create contiguous submeshes for physical mesh topology {torus.shape}")
    if expected not in known:
        raise ValueError(f"create_device_mesh cannot create contiguous submeshes for mesh_shape {tuple(shape)} and physical mesh "
                         f"topology {torus.shape}. Available mesh_shapes: {list(known)}")
    return torus.transpose(known[expected])


def in_torus(shape: Sequence[int], torus: Any, allow_split_physical_axes: bool = False) -> tuple[Any, list[tuple[int, ...]]]:
    """(a torus as a grid of this shape, the part of each torus axis that each mesh axis takes)."""
    try:
        chosen = _axes_of(shape, torus.shape)
        parts = [tuple(side if i in own else 1 for i, side in enumerate(torus.shape)) for own in chosen]
    except NotImplementedError:
        if not allow_split_physical_axes:
            raise
        parts = _parts_of(shape, torus.shape)
        return divided(shape, torus, parts), parts
    axes = [i for own in chosen for i in own]
    axes += [i for i in range(torus.ndim) if i not in axes]  # of size 1
    return torus.transpose(axes).reshape(tuple(shape)), parts
