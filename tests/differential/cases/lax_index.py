"""Calls of jax.lax: slices, gather and scatter."""

from makers import *


def gather_numbers(*parts, **named):
    return lib(lambda jax: jax.lax.GatherDimensionNumbers(*parts, **named))


def scatter_numbers(*parts, **named):
    return lib(lambda jax: jax.lax.ScatterDimensionNumbers(*parts, **named))


ROWS = gather_numbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
POINTS = gather_numbers((), (0,), (0,))
SET_ROWS = scatter_numbers(update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
SET_POINTS = scatter_numbers((), (0,), (0,))
OUTSIDE = array([[1], [7], [-2], [0]])

CASES = [
    case("lax.slice", f32(5, 4), (1, 0), (3, 4)),
    case("lax.slice", f32(5, 4), [1, 0], [5, 4], [2, 3]),
    case("lax.slice", f32(5), (0,), (6,)),
    case("lax.slice", f32(5), (3,), (2,)),
    case("lax.slice", f32(5), (0, 0), (2, 2)),
    case("lax.slice", f32(), (), ()),
    case("lax.slice_in_dim", f32(5, 4), 1, 3),
    case("lax.slice_in_dim", f32(5, 4), 1, -1, axis=1),
    case("lax.slice_in_dim", f32(5, 4), None, None, stride=2),
    case("lax.slice_in_dim", f32(5, 4), -3, None, 2, -1),
    case("lax.slice_in_dim", f32(5), 0, 1, axis=2),
    case("lax.slice_in_dim", f32(5), 0, 9),
    case("lax.index_in_dim", f32(5, 4), 2),
    case("lax.index_in_dim", f32(5, 4), -1, axis=1, keepdims=False),
    case("lax.index_in_dim", f32(5), 5),
    case("lax.index_in_dim", f32(5), 0, axis=1),
    case("lax.dynamic_slice", f32(5, 4), (1, 2), (2, 2)),
    case("lax.dynamic_slice", f32(5, 4), array([1, 2]), (2, 2)),
    case("lax.dynamic_slice", f32(5, 4), [i32(low=0, high=3), 1], [2, 2]),
    case("lax.dynamic_slice", f32(5), (-2,), (2,)),
    case("lax.dynamic_slice", f32(5), (array(-2),), (2,)),
    case("lax.dynamic_slice", f32(5), (array(9),), (2,)),
    case("lax.dynamic_slice", f32(5), (array(-2),), (2,), allow_negative_indices=False),
    case("lax.dynamic_slice", f32(5), (-2,), (2,), allow_negative_indices=False),
    case("lax.dynamic_slice", f32(5, 4), (1, -1), (2, 1), allow_negative_indices=[False, True]),
    case("lax.dynamic_slice", f32(5), (0, 0), (2,)),
    case("lax.dynamic_slice", f32(5), (0.0,), (2,)),
    case("lax.dynamic_slice", f32(5), (0,), (7,)),
    case("lax.dynamic_slice", f32(5), (0,), (-1,)),
    case("lax.dynamic_slice", f32(5), (u8(),), (2,)),
    case("lax.dynamic_slice_in_dim", f32(5, 4), 1, 2),
    case("lax.dynamic_slice_in_dim", f32(5, 4), array(-1), 2, axis=1),
    case("lax.dynamic_slice_in_dim", f32(5, 4), -1, 1, axis=-1),
    case("lax.dynamic_slice_in_dim", f32(5), -1, 1, allow_negative_indices=False),
    case("lax.dynamic_slice_in_dim", f32(5), 0, 1, axis=1),
    case("lax.dynamic_index_in_dim", f32(5, 4), 1),
    case("lax.dynamic_index_in_dim", f32(5, 4), array(2), axis=1, keepdims=False),
    case("lax.dynamic_index_in_dim", f32(5, 4), array(-1), -1, False),
    case("lax.dynamic_index_in_dim", f32(5), array(-1), allow_negative_indices=False),
    case("lax.dynamic_update_slice", f32(5, 4), f32(2, 2), (1, 2)),
    case("lax.dynamic_update_slice", f32(5, 4), f32(2, 2), array([9, -1])),
    case("lax.dynamic_update_slice", f32(5), i32(2), (1,)),
    case("lax.dynamic_update_slice", f32(5), f32(6), (1,)),
    case("lax.dynamic_update_slice", f32(5), 1.0, (1,)),
    case("lax.dynamic_update_slice", f32(5), f32(2), (1, 2)),
    case("lax.dynamic_update_slice_in_dim", f32(5, 4), f32(2, 4), 1, 0),
    case("lax.dynamic_update_slice_in_dim", f32(5, 4), f32(5, 1), array(-1), axis=1),
    case("lax.dynamic_update_slice_in_dim", f32(5), f32(1), 0, 1),
    case("lax.dynamic_update_index_in_dim", f32(5, 4), f32(4), 1, 0),
    case("lax.dynamic_update_index_in_dim", f32(5, 4), f32(5), array(2), axis=1),
    case("lax.dynamic_update_index_in_dim", f32(5), 1.0, array(-1), 0),
    case("lax.dynamic_update_index_in_dim", f32(5, 4), f32(1, 4), 3, 0),
    case("lax.index_take", f32(5, 4), (array([0, 4, -1]), array([1, 2, 3])), (0, 1)),
    case("lax.index_take", f32(5, 4, 2), (array([0, 4]),), (1,)),
    case("lax.gather", f32(5, 4), array([[1], [3], [0]]), ROWS, (1, 4)),
    case("lax.gather", f32(5, 4), OUTSIDE, ROWS, (1, 4), mode="clip"),
    case("lax.gather", f32(5, 4), OUTSIDE, ROWS, (1, 4), mode="fill"),
    case("lax.gather", f32(5, 4), OUTSIDE, ROWS, (1, 4), mode="fill", fill_value=-1.0),
    case("lax.gather", f32(5, 4), OUTSIDE, ROWS, (1, 4), mode=lib(lambda jax: jax.lax.GatherScatterMode.FILL_OR_DROP)),
    case("lax.gather", f32(5, 4), OUTSIDE, ROWS, (1, 4), mode=lib(lambda jax: jax.lax.GatherScatterMode.CLIP), transforms=True),
    case("lax.gather", i32(5), OUTSIDE, POINTS, (1,), mode="fill"),
    case("lax.gather", b1(5), OUTSIDE, POINTS, (1,), mode="fill"),
    case("lax.gather", u8(5), OUTSIDE, POINTS, (1,), mode="fill"),
    case("lax.gather", f32(5), array([[0], [3]]), POINTS, (1,), unique_indices=True, indices_are_sorted=True),
    case("lax.gather", f32(5, 4), array([[1], [3]]), gather_numbers((1,), (), (0,)), (2, 4)),
    case("lax.gather", f32(5, 4), array([[1, 1], [3, 0]]), gather_numbers((1, 2), (), (0, 1)), (2, 2), mode="clip"),
    case("lax.gather", f32(3, 4), array([[1], [3], [0]]),
         gather_numbers((), (1,), (1,), operand_batching_dims=(0,), start_indices_batching_dims=(0,)), (1, 1), mode="clip"),
    case("lax.gather", f32(5), array([[0], [3]]), POINTS, (2,)),
    case("lax.gather", f32(5), array([[0], [3]]), POINTS, (1,), mode="nonsense"),
    case("lax.gather", f32(5), array([[0.5]]), POINTS, (1,)),
    case("lax.gather", f32(5), array([[0], [3]]), gather_numbers((3,), (0,), (0,)), (1,)),
]
for name in ["scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max"]:
    CASES += [
        case(f"lax.{name}", f32(5, 4), array([[1], [3]]), f32(2, 4), SET_ROWS),
        case(f"lax.{name}", f32(5), array([[1], [1], [7], [-1]]), f32(4), SET_POINTS),
        case(f"lax.{name}", f32(5), array([[1], [7], [-1]]), f32(3), SET_POINTS, mode="clip"),
        case(f"lax.{name}", f32(5), array([[1], [7], [-1]]), f32(3), SET_POINTS, mode=lib(lambda jax: jax.lax.GatherScatterMode.FILL_OR_DROP)),
        case(f"lax.{name}", i32(5), array([[1], [2]]), i32(2), SET_POINTS, unique_indices=True, indices_are_sorted=True),
        case(f"lax.{name}", f32(5), array([[1], [2]]), i32(2), SET_POINTS),
        case(f"lax.{name}", f32(5), array([[1], [2]]), f32(3), SET_POINTS),
        case(f"lax.{name}", f32(5), array([[1], [2]]), f32(2), SET_POINTS, mode="nonsense"),
    ]
CASES += [
    case("lax.scatter_add", c64(5), array([[1], [1]]), c64(2), SET_POINTS),
    case("lax.scatter_add", bf16(5), array([[1], [1]]), bf16(2), SET_POINTS),
    case("lax.scatter_apply", f32(5), array([[1], [3]]), lib(lambda jax: jax.lax.sin), SET_POINTS, update_shape=(2,)),
    case("lax.scatter_apply", f32(5), array([[1], [9]]), lib(lambda jax: lambda x: jax.lax.cond(x > 0, jax.lax.exp, jax.lax.neg, x)), SET_POINTS, update_shape=(2,)),
    case("lax.scatter_apply", f32(5, 4), array([[1], [3]]), lib(lambda jax: lambda x: x * 2), SET_ROWS, update_shape=(2, 4)),
    case("lax.scatter_apply", f32(5), array([[1], [9]]), lib(lambda jax: jax.lax.neg), SET_POINTS, update_shape=(2,), mode="clip"),
    case("lax.dynamic_slice", f64(5, 4), (1, 2), (2, 2), x64=True),
    case("lax.dynamic_slice", f64(5, 4), (array(1), 2), (2, 2), x64=True),
    case("lax.dynamic_slice", f32(5), (i64(low=0, high=3),), (2,), x64=True),
    case("lax.dynamic_slice_in_dim", f32(5), array(1), 2, x64=True),
    case("lax.dynamic_index_in_dim", f64(5, 4), -1, x64=True),
    case("lax.dynamic_update_slice", f64(5), f64(2), (1,), x64=True),
    case("lax.gather", u64(5), i64(3, 1, low=0, high=9), POINTS, (1,), mode="fill", x64=True),
    case("lax.gather", f64(5), i64(3, 1, low=0, high=9), POINTS, (1,), mode="fill", x64=True),
    case("lax.scatter_add", f64(5), i64(3, 1, low=0, high=5), f64(3), SET_POINTS, x64=True),
    case("lax.index_take", f64(5, 4), (array([0, 4, -1]), array([1, 2, 3])), (0, 1), x64=True),
]
