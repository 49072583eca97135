"""create_device_mesh of TPU devices against jax's, on fake devices with the coordinates that libtpu lists."""
import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
theirs = pytest.importorskip("jax.experimental.mesh_utils")

from capibara.jax.experimental import mesh_utils as ours  # noqa: E402

SLICES = [("TPU v2", (2, 2, 1), 2), ("TPU v3", (4, 4, 1), 2), ("TPU v4", (2, 2, 1), 1), ("TPU v4", (2, 2, 4), 1), ("TPU v4", (4, 4, 4), 1),
          ("TPU v4", (4, 4, 8), 1), ("TPU v5 lite", (2, 2, 1), 1), ("TPU v5 lite", (2, 4, 1), 1), ("TPU v5 lite", (4, 4, 1), 1),
          ("TPU v5 lite", (8, 8, 1), 1), ("TPU v5 lite", (16, 16, 1), 1), ("TPU v5p", (2, 2, 2), 1), ("TPU v5p", (4, 4, 4), 1),
          ("TPU v6 lite", (4, 8, 1), 1), ("TPU v6 lite", (16, 16, 1), 1), ("TPU7x", (2, 2, 1), 2), ("TPU7x", (2, 2, 4), 2),
          ("TPU7x", (4, 4, 4), 2), ("TPU v4 lite", (2, 2, 1), 1)]


def devices_of(kind, sides, cores):
    """Host by host, blocks of 2x2 chips, as libtpu lists them."""
    width, height, depth = sides
    found = []
    for z, row, column in itertools.product(range(depth), range(0, height, 2), range(0, width, 2)):
        for y, x, core in itertools.product(range(2), range(2), range(cores)):
            found.append(SimpleNamespace(platform="tpu", device_kind=kind, coords=(column + x, row + y, z), core_on_chip=core,
                                         process_index=0, id=len(found)))
    return found


def shapes_of(count):
    """One, two and three axes whose product is the number of devices."""
    sizes = [size for size in (1, 2, 4, 8, 16, 32, 64, 128, 256) if count % size == 0]
    yield (count,)
    yield from ((first, count // first) for first in sizes)
    yield from ((first, second, count // first // second) for first in sizes for second in sizes if count % (first * second) == 0)


def answer(module, shape, devices, **words):
    try:
        grid = module.create_device_mesh(shape, devices, **words)
        return np.vectorize(lambda device: device.id)(grid).tolist()
    except (NotImplementedError, ValueError, AssertionError) as error:
        return type(error).__name__


@pytest.mark.parametrize("kind, sides, cores", SLICES, ids=lambda value: str(value).replace(" ", ""))
def test_the_order_is_that_of_jax(kind, sides, cores):
    devices = devices_of(kind, sides, cores)
    assert len(devices) == math.prod(sides) * cores
    placed = 0
    for shape in shapes_of(len(devices)):
        expected = answer(theirs, shape, devices)
        assert answer(ours, shape, devices) == expected, shape
        placed += isinstance(expected, list)
    assert placed >= 2


@pytest.mark.parametrize("sides, shape", [((4, 4, 4), (16, 4)), ((4, 4, 4), (4, 16)), ((2, 2, 4), (4, 4)), ((8, 8, 8), (64, 8))])
def test_contiguous_submeshes(sides, shape):
    devices = devices_of("TPU v4", sides, 1)
    assert answer(ours, shape, devices, contiguous_submeshes=True) == answer(theirs, shape, devices, contiguous_submeshes=True)


@pytest.mark.parametrize("kind, sides, cores", SLICES, ids=lambda value: str(value).replace(" ", ""))
def test_axes_of_the_torus_are_divided_as_by_jax(kind, sides, cores):
    devices = devices_of(kind, sides, cores)
    shapes = [*shapes_of(len(devices)), (1, 2, len(devices) // 2, 1)]
    if len(devices) % 16 == 0:
        shapes += [(2, 2, 2, len(devices) // 8), (len(devices) // 16, 2, 2, 4), (4, len(devices) // 16, 2, 2)]
    for shape in shapes:
        expected = answer(theirs, shape, devices, allow_split_physical_axes=True)
        assert isinstance(expected, list), shape
        assert answer(ours, shape, devices, allow_split_physical_axes=True) == expected, shape


def test_slices_of_several_are_divided_alike():
    devices = []
    for index in range(2):
        for device in devices_of("TPU v4", (4, 4, 4), 1):
            devices.append(SimpleNamespace(**{**vars(device), "slice_index": index, "id": device.id + 64 * index}))
    for shape in ((2, 32), (8, 8), (32, 2)):
        grids = [module.create_hybrid_device_mesh(shape, (2, 1), devices, allow_split_physical_axes=True) for module in (ours, theirs)]
        ids = [np.vectorize(lambda device: device.id)(grid).tolist() for grid in grids]
        assert ids[0] == ids[1], shape


def test_what_does_not_fit_the_torus_is_said():
    with pytest.raises(NotImplementedError, match="axis 1 of size 32 is not a product of the remaining axes of the torus 4x4x4"):
        ours.create_device_mesh((2, 32), devices_of("TPU v4", (4, 4, 4), 1))
