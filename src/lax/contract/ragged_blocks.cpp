// Loops over blocks of the rows of ragged groups: the rows of each block, and its contribution to the result.
#include "lax/contract/ragged_blocks.h"

#include <capibara/control.h>

#include "lax/rules.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

Array integer(int64_t value) { return scalar_of(DType::int32, static_cast<double>(value)); }

// Close to the rows of an average group, so that few rows of a block belong to the next group.
int64_t block_rows(int64_t rows, int64_t groups) {
  int64_t block = 8;
  while (block < 128 && block * groups < rows) block *= 2;
  return block;
}

// For each block its group, its first row and the end of its group's rows; unused blocks are empty and
// begin past the last row.
struct Blocks {
  int64_t rows;  // of a block
  Array group, first, end;

  Blocks(const Array& sizes, int64_t length) : rows(block_rows(length, sizes.shape(0))) {
    const int64_t groups = sizes.shape(0), count = length / rows + std::min(groups, length);
    const Array none = integer(0), all = integer(length);
    const Array counts = bits(sizes.dtype()) < 32 ? lax::convert_element_type(sizes, DType::int32) : sizes;
    const Array most = scalar_of(counts.dtype(), static_cast<double>(length));
    const Array clipped =
        lax::convert_element_type(lax::clamp(scalar_of(counts.dtype(), 0), counts, most), DType::int32);
    const Array ends = lax::min(lax::cumsum(clipped), lax::broadcast(all, {groups}));
    const Array starts = lax::concatenate({lax::broadcast(none, {1}), lax::slice_in_dim(ends, 0, groups - 1)}, 0);
    const Array of_group = lax::div(ends - starts + integer(rows - 1), lax::broadcast(integer(rows), {groups}));
    const Array block_ends = lax::cumsum(of_group);
    const Array number = lax::iota(DType::int32, count);
    auto down = [&](const Array& x) { return lax::broadcast_in_dim(x, {count, groups}, {1}); };
    const Array passed = lax::le(down(block_ends), lax::broadcast_in_dim(number, {count, groups}, {0}));
    const Array past = lax::reduce_sum(lax::convert_element_type(passed, DType::int32), {{1}});
    group = lax::min(past, lax::broadcast(integer(groups - 1), {count}));
    auto own = [&](const Array& x) { return lax::index_take(x, {group}, {0}); };
    const Array within = number - own(block_ends - of_group), is_left_over = lax::eq(past, integer(groups));
    const Array behind = lax::broadcast(all, {count});
    first = lax::select(is_left_over, behind, own(starts) + within * integer(rows));
    end = own(ends);
  }

  // Mask of the block's rows that belong to its group, for [rows, columns].
  Array inside(const Array& block_first, const Array& group_end, int64_t columns) const {
    const Array row = lax::broadcasted_iota(DType::int32, {rows, columns}, 0) + block_first;
    return lax::lt(row, lax::broadcast(group_end, {rows, columns}));
  }
};

// Pads one more block after the last row.
Array with_room(const Array& x, int64_t rows) {
  return lax::pad(x, scalar_of(x.dtype(), 0), {{0, rows, 0}, {0, 0, 0}});
}

Array multiply(const Array& x, const Array& y, DotDimensionNumbers numbers, const Attr& precision, DType out) {
  static const Primitive dot_general = primitive("dot_general");
  return capibara::bind(dot_general, Arrays{x, y},
                        {{"dimension_numbers", std::move(numbers)},
                         {"precision", precision},
                         {"preferred_element_type", out},
                         {"out_sharding", Attr()}})[0];
}

Array zeros_of(Shape shape, DType dtype) { return lax::broadcast(scalar_of(dtype, 0), std::move(shape)); }

}  // namespace

Array multiply_ragged_rows(const Array& x, const Array& matrices, const Array& sizes, bool transposed,
                           const RaggedProduct& product) {
  const int64_t length = x.shape(0), columns = matrices.shape(transposed ? 1 : 2);
  if (length == 0 || columns == 0 || sizes.shape(0) == 0 || x.shape(1) == 0) {
    return zeros_of({length, columns}, product.out);
  }
  const Blocks blocks(sizes, length);
  const Array padded = with_room(x, blocks.rows);
  // Blocks come in increasing row order: rows that one writes past its group's end are overwritten by the next.
  auto step = [&](std::span<const Array> in) -> Arrays {
    const Array &out = in[0], &group = in[1], &first = in[2], &end = in[3];
    const Array own = lax::dynamic_index_in_dim(matrices, group, 0, false);
    const Array block = multiply(lax::dynamic_slice_in_dim(padded, first, blocks.rows), own,
                                 {{1}, {transposed ? 1 : 0}, {}, {}}, product.precision, product.out);
    const Array kept = lax::select(blocks.inside(first, end, columns), block, lax::zeros_like(block));
    return {lax::dynamic_update_slice_in_dim(out, kept, first, 0)};
  };
  const Array out = lax::detail::scan_flat(step, {zeros_of({length + blocks.rows, columns}, product.out)},
                                           {blocks.group, blocks.first, blocks.end}, std::nullopt, false, 1)[0];
  return lax::slice_in_dim(out, 0, length);
}

Array multiply_ragged_inner(const Array& x, const Array& y, const Array& sizes, const RaggedProduct& product) {
  const int64_t length = x.shape(0), groups = sizes.shape(0), inner = x.shape(1), columns = y.shape(1);
  if (length == 0 || columns == 0 || groups == 0 || inner == 0) return zeros_of({groups, inner, columns}, product.out);
  const DType wide = is_floating(product.out) && bits(product.out) < 32 ? DType::float32 : product.out;
  const Blocks blocks(sizes, length);
  const Array padded_x = with_room(x, blocks.rows), padded_y = with_room(y, blocks.rows);
  auto step = [&](std::span<const Array> in) -> Arrays {
    const Array &sums = in[0], &group = in[1], &first = in[2], &end = in[3];
    auto rows_of = [&](const Array& all) {
      const Array rows = lax::dynamic_slice_in_dim(all, first, blocks.rows);
      return lax::select(blocks.inside(first, end, all.shape(1)), rows, lax::zeros_like(rows));
    };
    const Array part = multiply(rows_of(padded_x), rows_of(padded_y), {{0}, {0}, {}, {}}, product.precision, wide);
    const Array sum = lax::dynamic_index_in_dim(sums, group, 0, false) + part;
    return {lax::dynamic_update_index_in_dim(sums, sum, group, 0)};
  };
  const Array sums = lax::detail::scan_flat(step, {zeros_of({groups, inner, columns}, wide)},
                                            {blocks.group, blocks.first, blocks.end}, std::nullopt, false, 1)[0];
  return wide == product.out ? sums : lax::convert_element_type(sums, product.out);
}

}  // namespace capibara
