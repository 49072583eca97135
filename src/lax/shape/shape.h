// Shared by the records of the shape and index families: small list arithmetic, tuples in errors, sample types.
#pragma once

#include "core/array/format.h"
#include "lax/families.h"
#include "lax/rules.h"
#include "lax/sharding/factors.h"

#include <algorithm>
#include <numeric>

namespace capibara {

// The records that shape_family() and index_family() join, one function per file.
Family resize_records();    // broadcast_in_dim, reshape, squeeze
Family order_records();     // transpose, rev, tile
Family join_records();      // pad, concatenate, split, stack, unstack
Family creation_records();  // iota, empty
Family slice_records();
Family dynamic_slice_records();  // dynamic_slice, dynamic_update_slice
Family gather_records();
Family scatter_records();  // scatter and scatter-add, -sub, -mul, -min, -max

inline Ints range(int64_t stop, int64_t start = 0) {
  Ints out(static_cast<std::size_t>(std::max<int64_t>(0, stop - start)));
  std::iota(out.begin(), out.end(), start);
  return out;
}
inline bool contains(const Ints& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}
inline Ints plus(Ints list, int64_t amount) {
  for (int64_t& value : list) value += amount;
  return list;
}
inline Ints inserted(Ints list, int64_t position, int64_t value) {
  list.insert(list.begin() + position, value);
  return list;
}
inline Ints prepended(int64_t value, const Ints& list) { return inserted(list, 0, value); }
// The positions of `count` dimensions that are not in `dims`, ascending.
inline Ints other_dims(int64_t count, const Ints& dims) {
  Ints out;
  for (int64_t i = 0; i < count; ++i) {
    if (!contains(dims, i)) out.push_back(i);
  }
  return out;
}
inline bool has_duplicates(Ints list) {
  std::sort(list.begin(), list.end());
  return std::adjacent_find(list.begin(), list.end()) != list.end();
}
inline Ints inverse_permutation(const Ints& permutation) {
  Ints out(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i)
    out[static_cast<std::size_t>(permutation[i])] = static_cast<int64_t>(i);
  return out;
}
inline bool all_weak(std::span<const ArrayType> types) {
  return std::all_of(types.begin(), types.end(), [](const ArrayType& t) { return t.weak_type; });
}
// list[i] for a signed index.
inline int64_t at(const Ints& list, int64_t i) { return list[static_cast<std::size_t>(i)]; }

inline std::string tuple(const Ints& list) { return shape_tuple(list); }
std::string shapes_text(std::span<const ArrayType> types);                           // (2, 3), (4,)
void require_sizes(const std::string& op, const char* argument, const Ints& sizes);  // every entry >= 0

inline ArrayType sample_type(DType dtype, Shape shape) {
  ArrayType type;
  type.shape = std::move(shape);
  type.dtype = dtype;
  return type;
}
const std::vector<DType>& number_dtypes();  // dtypes that can be added and compared: integers and real floats
const std::vector<DType>& array_dtypes();   // dtypes of all arrays of plain values

// ---- windows: what gather and scatter share ----------------------------------------------------------------------

// The gather that reads what a scatter writes.
GatherDimensionNumbers inverse_of(const ScatterDimensionNumbers& dims);
// The window that a scatter writes, one size per operand dimension.
Ints window_sizes(const ScatterDimensionNumbers& dims, int64_t operand_rank, const Shape& updates);
jax::lax::GatherScatterMode mode_of(const Attrs& attrs);
const char* mode_name(jax::lax::GatherScatterMode mode);
std::optional<std::string> print_index_attribute(const std::string& name, const Attr& value);
// Index arrays clamped so that every window fits: the meaning of mode clip.
Array clamped_indices(const Array& indices, const Ints& upper_bounds);
// The out-of-bounds value of a gather in mode fill_or_drop, as a scalar of the operand's dtype.
Array gather_fill_value(const Attr& fill_value, DType dtype);
// The region (x, y) -> x op y of a scatter; one program per operation and dtype. op: add sub mul min max, or replace.
Program update_region(const std::string& op, DType dtype);
// Checks shared by the dimension numbers of gather and scatter; each raises TypeError.
void require_sorted_unique(const char* op, const char* name, const Ints& dims, int64_t rank);
void require_disjoint(const char* op, const char* name, const Ints& dims, const char* other_name, const Ints& other);
void require_batching_dims(const char* op, const ArrayType& operand, const ArrayType& indices,
                           const Ints& operand_batching, const Ints& indices_batching);

}  // namespace capibara
