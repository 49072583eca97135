"""Calls of jax.ops."""

from makers import *

IDS = array([0, 2, 1, 0, 5, -1, 2])


def each(*args, **options):
    return [case(f"ops.segment_{name}", *args, **options) for name in ("sum", "prod", "max", "min")]


CASES = [
    *each(f32(7), IDS, num_segments=4, transforms=True),
    *each(f32(7, 3), IDS, 6),
    *each(i32(7, 2), IDS, 4),
    *each(u8(7), IDS, 4),
    *each(b1(7), IDS, 4),
    *each(bf16(7), IDS, 4),
    *each(f32(7), IDS),
    *each(f32(7), IDS, 4, bucket_size=2, tolerance=1e-5),
    *each(bf16(7), IDS, 4, bucket_size=3),
    *each(f32(7), array([0, 0, 1, 1, 1, 3, 3]), num_segments=4, indices_are_sorted=True),
    *each(f32(4), array([3, 0, 2, 1]), num_segments=4, unique_indices=True),
    *each(f32(7), IDS, 4, mode="clip"),
    *each(f32(7), array([0, 1, 2, 3, 2, 1, 0]), 4, mode="promise_in_bounds"),
    *each(f32(7), IDS, -1),
    *each(f32(7), IDS, 0),
    *each(zeros((0,)), zeros((0,), np.int32), 3),
    case("ops.segment_sum", zeros((0,)), zeros((0,), np.int32)),
    case("ops.segment_sum", c64(7), IDS, 4),
    case("ops.segment_sum", f32(7), IDS, 4, mode="drop"),
    case("ops.segment_sum", f32(7), f32(7), 4),
    case("ops.segment_sum", f32(7), f32(5), 4),
    case("ops.segment_sum", [1.0, 2.0], IDS, 4),
    case("ops.segment_sum", f32(2, 3), i32(2, 3, low=0, high=3), 4),
    case("ops.segment_sum", f32(3), i32(2, 3, low=0, high=3), 4),
    case("ops.segment_max", HARD32, array([0, 1, 2] * 6 + [0]), 4, transforms=True),
    case("ops.segment_min", HARD32, array([0, 1, 2] * 6 + [0]), 4, transforms=True),
    check("ops.segment_sum: traced ids", lambda jax: jax.jit(jax.ops.segment_sum)(jax.numpy.ones(3), jax.numpy.arange(3))),
]
