// Shared by the fused operations on rows: sums over the last axis, and the types of per-row and per-column arrays.
#pragma once

#include <capibara/lax.h>

#include "lax/families.h"
#include "lax/rules.h"

namespace capibara::kernels {

// Sums accumulate in at least float32.
inline DType sum_dtype(DType dtype) { return dtype == DType::float64 ? DType::float64 : DType::float32; }

// Sums over the last axis, which is kept with size 1.
inline Array row_sum(const Array& x) {
  const int64_t last = x.ndim() - 1;
  return jax::lax::expand_dims(jax::lax::reduce_sum(x, {.axes = {last}}), {last});
}
inline Array row_mean(const Array& x) { return row_sum(x) / Array(static_cast<double>(x.shape(-1))); }
// Without gradient: results do not depend on it.
inline Array row_max(const Array& x) {
  const int64_t last = x.ndim() - 1;
  return jax::lax::stop_gradient(jax::lax::expand_dims(jax::lax::reduce_max(x, {.axes = {last}}), {last}));
}
inline Array drop_last(const Array& x) { return jax::lax::squeeze(x, {x.ndim() - 1}); }
inline Array add_last(const Array& x) { return jax::lax::expand_dims(x, {x.ndim()}); }
// Sums over all axes but the last.
inline Array column_sum(const Array& x) {
  const Shape rows(x.shape().begin(), x.shape().end() - 1);
  return jax::lax::reduce_sum(x.reshape({element_count(rows), x.shape(-1)}), {.axes = {0}});
}

// ---- types ------------------------------------------------------------------------------------------------------

// The type of one sum per row.
inline ArrayType row_type(const ArrayType& x) {
  ArrayType type = x.with_dtype(sum_dtype(x.dtype)).strong();
  type.shape.pop_back();
  return type;
}
// The type of one weight per column.
inline ArrayType column_type(const ArrayType& x) { return x.with_shape({x.shape.back()}).strong(); }

inline void require_rows(const char* op, const ArrayType& x, const char* argument = "x") {
  if (x.rank() > 0 && is_floating(x.dtype)) return;
  throw TypeError(
      concat(op, ": expected a floating array of rank 1 or more (argument '", argument, "'), got ", to_string(x)));
}

inline void require_type(const char* op, const char* argument, const ArrayType& given, const ArrayType& expected) {
  if (given.shape == expected.shape && given.dtype == expected.dtype) return;
  throw TypeError(
      concat(op, ": expected ", to_string(expected), " (argument '", argument, "'), got ", to_string(given)));
}

inline std::vector<ArrayType> sample_rows(DType dtype) {
  std::vector<ArrayType> rows;
  for (const Shape& shape : {Shape{4, 8}, Shape{2, 3, 5}, Shape{7}, Shape{64, 64}})
    rows.push_back(scalar_of(dtype, 0).type().with_shape(shape));
  return rows;
}

inline double count_flops(double per_element, const ArrayType& x) {
  return per_element * static_cast<double>(x.size());
}

}  // namespace capibara::kernels
