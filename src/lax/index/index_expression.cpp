// Reads index expressions with NumPy's rules and converts them to the operands of a gather.
#include "lax/index/index_expression.h"

#include "lax/reduce/monoid.h"
#include "lax/shape/shape.h"

#include <limits>

namespace capibara {

namespace lax = jax::lax;

namespace {

int64_t dimensions_of(const Index& index) {
  if (std::holds_alternative<NewAxis>(index.entry()) || std::holds_alternative<Ellipsis>(index.entry())) return 0;
  if (const Array* array = std::get_if<Array>(&index.entry())) {
    if (is_bool(array->dtype())) return array->ndim();
    if (!is_integer(array->dtype())) {
      throw TypeError(
          concat("index: an index array must have integer or boolean type, got ", to_string(array->type())));
    }
  }
  return 1;
}

// The positions where a mask is true, one index array per dimension of the mask.
std::vector<Array> true_positions(const Array& mask, const Shape& shape, int64_t first_axis) {
  if (mask.is_tracer()) {
    throw NonConcreteBooleanIndexError(concat("index: boolean index arrays must be concrete, got a traced ",
                                              to_string(mask.type()),
                                              "; use where with three arguments, or a mask known outside jit"));
  }
  for (int64_t i = 0; i < mask.ndim(); ++i) {
    int64_t expected = at(shape, first_axis + i);
    if (mask.shape(i) != expected && mask.shape(i) != 0) {
      throw IndexError(concat("boolean index did not match shape of the dimensions it indexes: got ",
                              tuple(mask.shape()), " for shape ", tuple(shape), " from axis ", first_axis));
    }
  }
  auto rank = static_cast<std::size_t>(mask.ndim());
  std::vector<std::vector<int32_t>> positions(rank);
  std::vector<bool> values = mask.to_vector<bool>();
  Ints place(rank, 0);
  for (bool value : values) {
    for (std::size_t d = 0; value && d < rank; ++d) positions[d].push_back(static_cast<int32_t>(place[d]));
    for (std::size_t d = rank; d-- > 0;) {
      if (++place[d] < mask.shape()[d]) break;
      place[d] = 0;
    }
  }
  std::vector<Array> out;
  for (const auto& column : positions) out.push_back(array<int32_t>(column));
  return out;
}

}  // namespace

std::atomic<bool>& checks_static_indices() {
  static std::atomic<bool> checks = false;
  return checks;
}

IndexExpression parse_index(const Shape& shape, const std::vector<Index>& indices) {
  IndexExpression parsed;
  parsed.shape = shape;
  auto rank = static_cast<int64_t>(shape.size());
  int64_t consumed = 0, ellipses = 0;
  for (const Index& index : indices) {
    consumed += dimensions_of(index);
    ellipses += std::holds_alternative<Ellipsis>(index.entry());
  }
  if (ellipses > 1) throw IndexError("index: an index can only have a single ellipsis");
  if (consumed > rank) {
    throw IndexError(
        concat("index: Too many indices: array is ", rank, "-dimensional, but ", consumed, " were indexed"));
  }
  int64_t axis = 0, last_advanced = -1;
  auto add = [&](IndexEntry::Kind kind) -> IndexEntry& {
    bool consumes = kind != IndexEntry::new_axis && kind != IndexEntry::scalar_mask;
    IndexEntry& added = parsed.entries.emplace_back();
    added.kind = kind;
    if (consumes) added.axis = axis++;
    return added;
  };
  auto add_full_slices = [&](int64_t count) {
    for (int64_t i = 0; i < count; ++i) add(IndexEntry::slice);
  };
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const Index::Entry& entry = indices[i].entry();
    bool advanced = false;
    if (const int64_t* integer = std::get_if<int64_t>(&entry)) {
      IndexEntry& added = add(IndexEntry::integer);
      added.position = *integer;
      const int64_t size = shape[static_cast<std::size_t>(added.axis)];
      if (checks_static_indices() && (*integer < -size || *integer >= size)) {
        throw IndexError(concat("index ", *integer, " out of bounds for axis ", added.axis, " with size ", size));
      }
      advanced = true;
    } else if (const Slice* slice = std::get_if<Slice>(&entry)) {
      add(IndexEntry::slice).range = *slice;
    } else if (std::holds_alternative<NewAxis>(entry)) {
      add(IndexEntry::new_axis);
    } else if (std::holds_alternative<Ellipsis>(entry)) {
      add_full_slices(rank - consumed);
    } else {
      const Array& array = std::get<Array>(entry);
      if (!is_bool(array.dtype())) {
        add(IndexEntry::array).indices = array;
        parsed.any_array = true;
        advanced = true;
      } else if (array.ndim() == 0) {
        true_positions(array, shape, axis);  // raises if it is traced
        add(IndexEntry::scalar_mask).indices = array;
        parsed.any_mask = true;
      } else {
        for (Array& positions : true_positions(array, shape, axis)) {
          IndexEntry& added = add(IndexEntry::array);
          added.indices = std::move(positions);
          added.from_mask = true;
        }
        parsed.any_array = parsed.any_mask = advanced = true;
      }
    }
    if (advanced) {  // an ellipsis between two counts as a gap even if it is empty
      auto position = static_cast<int64_t>(i);
      if (last_advanced >= 0 && position != last_advanced + 1) parsed.adjacent = false;
      last_advanced = position;
    }
  }
  add_full_slices(rank - axis);
  return parsed;
}

// ---- slices ------------------------------------------------------------------------------------------------------

ResolvedSlice resolve_slice(const Slice& slice, int64_t size) {
  int64_t step = slice.step.value_or(1);
  if (step == 0) throw ValueError("index: slice step cannot be zero");
  int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  auto bounded = [&](int64_t i) { return i < 0 ? std::max(i + size, low) : std::min(i, high); };
  int64_t start = slice.start ? bounded(*slice.start) : (step > 0 ? low : high);
  int64_t stop = slice.stop ? bounded(*slice.stop) : (step > 0 ? high : low);
  int64_t distance = step > 0 ? stop - start : start - stop, gap = step > 0 ? step : -step;
  // A step near the limits of int64 must not overflow.
  int64_t count = distance <= 0 ? 0 : 1 + (distance - 1) / gap;
  return {start, stop, step, count};
}

DType index_dtype_for(const Shape& shape) {
  bool large =
      std::any_of(shape.begin(), shape.end(), [](int64_t d) { return d > std::numeric_limits<int32_t>::max(); });
  return large ? DType::int64 : DType::int32;
}

Array index_constant(int64_t value, DType dtype) { return exact_scalar(dtype, value); }

Array broadcast_to_shape(const Array& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  auto lead = static_cast<int64_t>(shape.size()) - x.ndim();
  return lax::broadcast_in_dim(x, shape, range(static_cast<int64_t>(shape.size()), lead));
}

// ---- gather ------------------------------------------------------------------------------------------------------

namespace {

// Masks of rank 0 become a dimension of size 1 indexed by 0 or by nothing.
IndexExpression expand_scalar_masks(IndexExpression parsed, Ints& mask_dims) {
  int64_t axis = 0;
  for (std::size_t i = 0; i < parsed.entries.size(); ++i) {
    IndexEntry& entry = parsed.entries[i];
    if (entry.kind == IndexEntry::scalar_mask) {
      mask_dims.push_back(axis);
      parsed.shape.insert(parsed.shape.begin() + axis, 1);
      entry.indices = array<int32_t>(std::vector<int32_t>(entry.indices.item<bool>() ? 1 : 0, 0));
      entry.kind = IndexEntry::array;
      entry.from_mask = true;
      parsed.any_array = true;
      entry.axis = axis++;
    } else if (entry.kind != IndexEntry::new_axis) {
      entry.axis = axis++;
    }
  }
  return parsed;
}

Array normalized(const IndexEntry& entry, int64_t size) {
  const Array& index = entry.indices;
  if (is_unsigned(index.dtype())) return index;
  Array negative = entry.from_mask
                       ? array<bool>(std::vector<bool>(static_cast<std::size_t>(index.size()), false), index.shape())
                       : lax::lt(index, index_constant(0, index.dtype()));
  Array from_end = lax::add(index, index_constant(size, index.dtype()));
  return lax::select(negative, from_end, index);
}

}  // namespace

GatherIndexer to_gather(IndexExpression expression, bool wrap_negative) {
  GatherIndexer out;
  bool adjacent = expression.adjacent;
  IndexExpression parsed = expand_scalar_masks(std::move(expression), out.scalar_mask_dims);
  for (IndexEntry& entry : parsed.entries) {
    if (!wrap_negative) break;
    int64_t size = entry.axis < 0 ? 0 : at(parsed.shape, entry.axis);
    if (entry.kind == IndexEntry::integer && entry.position < 0) entry.position += size;
    if (entry.kind == IndexEntry::array) entry.indices = normalized(entry, size);
  }

  // With an index array of rank 1 or more, all integers and index arrays broadcast together.
  std::vector<Array> advanced;
  Ints advanced_axes, advanced_positions;
  out.advanced = std::any_of(parsed.entries.begin(), parsed.entries.end(),
                             [](const IndexEntry& e) { return e.kind == IndexEntry::array && e.indices.ndim() > 0; });
  for (std::size_t i = 0; out.advanced && i < parsed.entries.size(); ++i) {
    const IndexEntry& entry = parsed.entries[i];
    if (entry.kind != IndexEntry::integer && entry.kind != IndexEntry::array) continue;
    advanced.push_back(entry.kind == IndexEntry::integer ? Array(entry.position) : entry.indices);
    advanced_axes.push_back(entry.axis);
    advanced_positions.push_back(static_cast<int64_t>(i));
  }

  DType dtype = index_dtype_for(parsed.shape);
  struct Column {
    Array positions;
    int64_t first_dim;
  };
  std::vector<Column> columns;
  Shape indices_shape;
  Ints collapsed;
  int64_t result_dim = 0, collapsed_dim = 0;  // in the result with and without the new axes
  for (std::size_t i = 0; i < parsed.entries.size(); ++i) {
    const IndexEntry& entry = parsed.entries[i];
    auto position = static_cast<int64_t>(i);
    if (out.advanced && position == (adjacent ? advanced_positions[0] : 0)) {
      std::vector<Shape> shapes;
      for (const Array& a : advanced) shapes.push_back(a.shape());
      Shape common;
      try {
        common = lax::broadcast_shapes(shapes);
      } catch (const ValueError& error) {
        throw ValueError(concat("index: index arrays must broadcast together: ", error.what()));
      }
      auto first = static_cast<int64_t>(indices_shape.size());
      std::vector<Array> aligned;
      for (const Array& a : advanced) aligned.push_back(broadcast_to_shape(a, common));
      for (const Array& a : aligned) columns.push_back({lax::convert_element_type(a, dtype, false), first});
      indices_shape.insert(indices_shape.end(), common.begin(), common.end());
      out.dims.start_index_map.insert(out.dims.start_index_map.end(), advanced_axes.begin(), advanced_axes.end());
      collapsed.insert(collapsed.end(), advanced_axes.begin(), advanced_axes.end());
      out.slice_shape.insert(out.slice_shape.end(), common.begin(), common.end());
      result_dim += static_cast<int64_t>(common.size());
      collapsed_dim += static_cast<int64_t>(common.size());
    }
    if (contains(advanced_positions, position)) {
      out.window.push_back(1);
      continue;
    }
    if (entry.kind == IndexEntry::new_axis) {
      out.slice_shape.push_back(1);
      out.new_axes.push_back(result_dim++);
      continue;
    }
    int64_t size = at(parsed.shape, entry.axis);
    auto next_dim = static_cast<int64_t>(indices_shape.size());
    if (entry.kind != IndexEntry::slice) {
      if (size == 0) throw IndexError(concat("index: index is out of bounds for axis ", entry.axis, " with size 0"));
      Array at_position = entry.kind == IndexEntry::integer ? index_constant(entry.position, dtype)
                                                            : lax::convert_element_type(entry.indices, dtype, false);
      columns.push_back({at_position, next_dim});
      collapsed.push_back(entry.axis);
      out.window.push_back(1);
      out.dims.start_index_map.push_back(entry.axis);
      continue;
    }
    ResolvedSlice s = resolve_slice(entry.range, size);
    out.slice_shape.push_back(s.size);
    if (s.step == 1) {
      if (s.size != size) {
        columns.push_back({index_constant(s.start, dtype), next_dim});
        out.dims.start_index_map.push_back(entry.axis);
      }
      out.window.push_back(s.size);
      out.dims.offset_dims.push_back(collapsed_dim);
    } else {
      Array steps = lax::mul(index_constant(s.step, dtype), lax::iota(dtype, s.size));
      Array positions = lax::add(index_constant(s.start, dtype), steps);
      if (s.step < 0) {
        out.reversed_dims.push_back(collapsed_dim);
        positions = lax::rev(positions, {0});
      }
      out.window.push_back(1);
      columns.push_back({positions, next_dim});
      out.dims.start_index_map.push_back(entry.axis);
      indices_shape.push_back(s.size);
      collapsed.push_back(entry.axis);
    }
    ++collapsed_dim;
    ++result_dim;
  }

  if (columns.empty()) {
    out.indices = dtype == DType::int32 ? array<int32_t>(std::vector<int32_t>{}) : lax::zeros(sample_type(dtype, {0}));
  } else if (columns.size() == 1) {
    out.indices = lax::expand_dims(columns[0].positions, {columns[0].positions.ndim()});
  } else {
    auto last = static_cast<int64_t>(indices_shape.size());
    indices_shape.push_back(1);
    Arrays vectors;
    for (const Column& column : columns) {
      vectors.push_back(lax::broadcast_in_dim(column.positions, indices_shape,
                                              range(column.first_dim + column.positions.ndim(), column.first_dim)));
    }
    out.indices = lax::concatenate(vectors, last);
  }
  std::sort(collapsed.begin(), collapsed.end());
  out.dims.collapsed_slice_dims = std::move(collapsed);
  return out;
}

}  // namespace capibara
