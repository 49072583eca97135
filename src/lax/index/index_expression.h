// Index expressions: the contents of the brackets, checked and expanded, and as the operands of a gather.
#pragma once

#include <capibara/indexing.h>
#include <capibara/lax.h>

#include <atomic>

namespace capibara {

// One entry after ellipses and masks were expanded; `axis` is the dimension that it consumes, if any.
struct IndexEntry {
  enum Kind { integer, slice, new_axis, array, scalar_mask };

  Kind kind;
  int64_t axis = -1;
  int64_t position = 0;    // integer
  Slice range;             // slice
  Array indices;           // array, scalar_mask
  bool from_mask = false;  // an index array without negative entries
};

struct IndexExpression {
  Shape shape;  // of the indexed array
  std::vector<IndexEntry> entries;
  bool any_array = false, any_mask = false;
  bool adjacent = true;  // the advanced indices are adjacent
};

// True if integers out of bounds raise instead of being clamped: the setting jax_check_static_indices.
std::atomic<bool>& checks_static_indices();

IndexExpression parse_index(const Shape& shape, const std::vector<Index>& indices);

// Python's slice.indices, and the number of elements that it selects.
struct ResolvedSlice {
  int64_t start, stop, step, size;
};
ResolvedSlice resolve_slice(const Slice& slice, int64_t size);

// The dtype of positions in an array of this shape, and a position as a constant.
DType index_dtype_for(const Shape& shape);
Array index_constant(int64_t value, DType dtype);

// An index expression as the operands of a gather, or of the scatter that writes the same elements.
struct GatherIndexer {
  Shape slice_shape;  // of the result, new axes included
  Ints window;        // slice sizes
  Array indices;
  GatherDimensionNumbers dims;
  bool advanced = false;  // index arrays may repeat and be in any order
  Ints reversed_dims, new_axes, scalar_mask_dims;
};
GatherIndexer to_gather(IndexExpression expression, bool wrap_negative);

// The function applied to each indexed element, once for every time it is indexed.
Array apply_at(const Array& array, const std::vector<Index>& indices,
               const std::function<Array(const Array&)>& function, const UpdateOptions& options);

// x repeated along leading dimensions and dimensions of size 1; the shapes are known to fit.
Array broadcast_to_shape(const Array& x, const Shape& shape);

}  // namespace capibara
