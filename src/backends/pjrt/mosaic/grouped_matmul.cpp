// TPU kernels of matmuls of ragged groups of rows, and of the sums over each group that their derivatives need.
//
// A step is a pair of a group and a block of rows that holds rows of it. The list of steps is computed from the sizes
// before the kernel, which reads it as prefetched scalars; a block of rows that groups share is visited once for each.
#include <capibara/lax.h>

#include <algorithm>

#include "backends/pjrt/mosaic/kernels.h"

namespace capibara::mosaic {

namespace {

namespace lax = jax::lax;
using Order = Kernel::Order;

constexpr int64_t row_block = 512, column_block = 512;

Array number(int64_t value) { return Array(value).astype(DType::int32); }

Array filled(int64_t value, int64_t count) { return lax::broadcast(number(value), {count}); }

// int32 vectors: of each step its group, its block of rows, and 1 if it is the group's first; of each group its first
// row and the row after its last; the number of steps that do something.
struct Steps {
  int64_t count, rows, block;
  Array group, tile, first, starts, ends, active;

  Steps(const Array& sizes, int64_t all_rows)
      : count(blocks_of(all_rows, std::min(all_rows, row_block)) + sizes.size() - 1),
        rows(all_rows),
        block(std::min(all_rows, row_block)) {
    const int64_t groups = sizes.size();
    const Array limit = filled(rows, groups), zero = filled(0, groups);
    const Array own = sizes.astype(DType::int32), sums = lax::cumsum(own);
    ends = lax::min(sums, limit);
    starts = lax::min(sums - own, limit);
    const Array begin = lax::div(starts, filled(block, groups)),
                last = lax::div(ends - number(1), filled(block, groups));
    const Array counts = lax::select(starts < ends, last - begin + number(1), zero), until = lax::cumsum(counts);
    active = lax::slice_in_dim(until, groups - 1, groups, 1, 0);
    // Steps after the active ones stay at the last window.
    const Array all = lax::iota(DType::int32, count), bound = lax::broadcast_in_dim(active - number(1), {count}, {0});
    const Array step = lax::max(lax::min(all, bound), filled(0, count));
    const Array rows_of_steps = lax::broadcast_in_dim(step, {count, groups}, {0});
    const Array passed = lax::broadcast_in_dim(until, {count, groups}, {1}) <= rows_of_steps;
    const Array found = lax::reduce_sum(passed.astype(DType::int32), {.axes = {1}});
    group = lax::min(found, filled(groups - 1, count));
    const Array is_group = lax::broadcast_in_dim(group, {count, groups}, {0}) ==
                           lax::broadcast_in_dim(lax::iota(DType::int32, groups), {count, groups}, {1});
    const auto of_group = [&](const Array& x) {
      const Array spread = lax::broadcast_in_dim(x, {count, groups}, {1});
      return lax::reduce_sum(lax::select(is_group, spread, lax::zeros_like(spread)), {.axes = {1}});
    };
    const Array within = step - of_group(until - counts);
    tile = lax::min(of_group(begin) + within, filled(blocks_of(rows, block) - 1, count));
    first = (within == filled(0, count)).astype(DType::int32);
  }
};

struct StepRefs {
  Ref group, tile, first, starts, ends, active;

  StepRefs(Kernel& kernel, const Steps& steps, Arrays& operands)
      : group(add(kernel, "group", steps.group, operands)),
        tile(add(kernel, "tile", steps.tile, operands)),
        first(add(kernel, "first", steps.first, operands)),
        starts(add(kernel, "starts", steps.starts, operands)),
        ends(add(kernel, "ends", steps.ends, operands)),
        active(add(kernel, "active", steps.active, operands)) {}

  static Ref add(Kernel& kernel, const char* name, const Array& x, Arrays& operands) {
    operands.push_back(x);
    return kernel.prefetch(name, x.type());
  }

  Value is_active(Kernel& kernel, const Value& step) const {
    return less(step, kernel.load(active, kernel.constant(0)));
  }
  // True for the rows of a block that belong to the step's group, [rows, columns].
  Value own_rows(Kernel& kernel, const Value& step, const Shape& shape) const {
    const Value at = kernel.load(group, step), tile_at = kernel.load(tile, step);
    const Value row = kernel.iota(shape, 0) + tile_at * static_cast<double>(shape[0]);
    return less_equal(kernel.broadcast(kernel.load(starts, at), shape), row) & less(row, kernel.load(ends, at));
  }
};

// Where steps are a dimension of the grid.
BlockIndex by_step(std::function<std::vector<Value>(const Point&, const Value& group, const Value& tile)> index,
                   std::size_t dimension) {
  return [index = std::move(index), dimension](const Point& point) {
    const Value& step = point.at[dimension];
    return index(point, point.kernel.load(point.prefetched[0], step), point.kernel.load(point.prefetched[1], step));
  };
}

bool takes(const ArrayType& x, const ArrayType& sizes, int64_t weights_rank) {
  return x.rank() == 2 && weights_rank <= 3 && sizes.rank() == 1 && sizes.size() > 0 && x.size() > 0 &&
         sizes.size() <= 1024 && x.shape[0] <= int64_t{1} << 28 &&
         (x.dtype == DType::float32 || x.dtype == DType::bfloat16);
}

// (x [rows, inner], weights [groups, inner, columns] or transposed, sizes [groups]) -> [rows, columns]
Arrays matmul(std::span<const Array> in, const Attrs& attrs) {
  const Array &x = in[0], &weights = in[1];
  if (!takes(x.type(), in[2].type(), weights.ndim())) return {};
  const bool transposed = attrs.boolean("transpose_weights");
  const int64_t inner = x.shape(1), columns = weights.shape(transposed ? 1 : 2), depth = dividing_block(inner);
  if (depth == 0 || columns == 0) return {};
  const Steps steps(in[2], x.shape(0));
  const int64_t width = std::min(columns, column_block), passes = inner / depth;
  Kernel kernel(
      "capibara_grouped_matmul",
      {{blocks_of(columns, width), Order::parallel}, {steps.count, Order::arbitrary}, {passes, Order::arbitrary}});
  Arrays operands;
  const StepRefs refs(kernel, steps, operands);
  operands.insert(operands.end(), {x, weights});
  const Ref rows = kernel.input("x", x.type(), {steps.block, depth},
                                by_step(
                                    [](const Point& point, const Value&, const Value& tile) {
                                      return std::vector<Value>{tile, point.at[2]};
                                    },
                                    1));
  const Ref matrix = kernel.input(
      "weights", weights.type(), transposed ? Shape{1, width, depth} : Shape{1, depth, width},
      by_step(
          [transposed](const Point& point, const Value& group, const Value&) {
            const Value &column = point.at[0], &pass = point.at[2];
            return transposed ? std::vector<Value>{group, column, pass} : std::vector<Value>{group, pass, column};
          },
          1));
  const Ref result = kernel.output("result", array_type(x.dtype(), {x.shape(0), columns}), {steps.block, width},
                                   by_step(
                                       [](const Point& point, const Value&, const Value& tile) {
                                         return std::vector<Value>{tile, point.at[0]};
                                       },
                                       1));
  const Shape block{steps.block, width};
  const Ref total = kernel.scratch("total", Element::f32, block);
  const Value step = kernel.point(1), pass = kernel.point(2);
  kernel.when(refs.is_active(kernel, step), [&] {
    kernel.when(equal(pass, kernel.constant(0)), [&] { kernel.store(kernel.filled(0, Element::f32, block), total); });
    const Value product =
        kernel.matmul(kernel.load(rows), 1, kernel.load(matrix), transposed ? 1 : 0, keeps_all_bits());
    kernel.store(kernel.load(total) + product, total);
    kernel.when(equal(pass, kernel.constant(static_cast<double>(passes - 1))), [&] {
      // Rows of other groups keep what an earlier step stored; what no group has is replaced after the kernel.
      const Value before = kernel.convert(kernel.load(result), Element::f32);
      const Value after = kernel.select(refs.own_rows(kernel, step, block), kernel.load(total), before);
      kernel.store(kernel.convert(after, result.element), result);
    });
  });
  kernel.cost.flops = static_cast<int64_t>(2.0 * double(x.shape(0)) * double(inner) * double(columns));
  const Array product = call(kernel, operands)[0];
  const Array row = lax::broadcasted_iota(DType::int32, product.shape(), 0);
  const Array end = lax::slice_in_dim(steps.ends, steps.ends.size() - 1, steps.ends.size(), 1, 0);
  return {lax::select(row < lax::broadcast_in_dim(end.reshape({1, 1}), product.shape(), {0, 1}), product,
                      lax::zeros_like(product))};
}

// (x [rows, inner], y [rows, columns], sizes [groups]) -> [groups, inner, columns]
Arrays outer(std::span<const Array> in, const Attrs&) {
  const Array &x = in[0], &y = in[1], &sizes = in[2];
  if (!takes(x.type(), sizes.type(), 3) || y.size() == 0) return {};
  const Steps steps(sizes, x.shape(0));
  const int64_t inner = x.shape(1), columns = y.shape(1);
  const int64_t height = std::min(inner, column_block), width = std::min(columns, column_block);
  Kernel kernel("capibara_grouped_outer", {{blocks_of(inner, height), Order::parallel},
                                           {blocks_of(columns, width), Order::parallel},
                                           {steps.count, Order::arbitrary}});
  Arrays operands;
  const StepRefs refs(kernel, steps, operands);
  operands.insert(operands.end(), {x, y});
  const auto rows_index = [](std::size_t dimension) {
    return by_step(
        [dimension](const Point& point, const Value&, const Value& tile) {
          return std::vector<Value>{tile, point.at[dimension]};
        },
        2);
  };
  const Ref left = kernel.input("x", x.type(), {steps.block, height}, rows_index(0));
  const Ref right = kernel.input("y", y.type(), {steps.block, width}, rows_index(1));
  const Ref result = kernel.output("result", array_type(x.dtype(), {sizes.size(), inner, columns}), {1, height, width},
                                   by_step(
                                       [](const Point& point, const Value& group, const Value&) {
                                         return std::vector<Value>{group, point.at[0], point.at[1]};
                                       },
                                       2));
  const Shape block{height, width};
  const Ref total = kernel.scratch("total", Element::f32, block);
  const Value step = kernel.point(2);
  // Zeros in the rows of other groups, and where nothing is known of the values.
  const auto own = [&](const Ref& ref) {
    const Value wide = kernel.convert(kernel.load(ref), Element::f32);
    const Value rows = kernel.select(refs.own_rows(kernel, step, *wide.shape), wide, like(wide, 0));
    return kernel.convert(rows, ref.element);
  };
  kernel.when(refs.is_active(kernel, step), [&] {
    kernel.when(equal(kernel.load(refs.first, step), kernel.constant(1)),
                [&] { kernel.store(kernel.filled(0, Element::f32, block), total); });
    const Value rows = steps.rows % steps.block == 0 ? kernel.load(right) : own(right);
    const Value sum = kernel.load(total) + kernel.matmul(own(left), 0, rows, 0, keeps_all_bits());
    kernel.store(sum, total);
    kernel.store(kernel.convert(sum, result.element), result);
  });
  kernel.cost.flops = static_cast<int64_t>(2.0 * double(x.shape(0)) * double(inner) * double(columns));
  const Array products = call(kernel, operands)[0];
  const Array filled = lax::broadcast_in_dim(steps.starts < steps.ends, products.shape(), {0});
  return {lax::select(filled, products, lax::zeros_like(products))};
}

}  // namespace

std::vector<Entry> grouped_matmul_kernels() { return {{"grouped_matmul", matmul}, {"grouped_outer", outer}}; }

}  // namespace capibara::mosaic
