// jax.numpy: diagonals, traces and triangles of matrices.
#include <capibara/indexing.h>
#include <capibara/lax.h>
#include <capibara/numpy/creation.h>
#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/indexing.h>
#include <capibara/numpy/manipulation.h>
#include <capibara/numpy/reductions.h>
#include <capibara/numpy/sorting.h>

#include <algorithm>

#include "lax/operators/promote.h"
#include "lax/shape/shape.h"
#include "library/numpy/indexing_steps.h"

namespace capibara::jax::numpy {

// ---- diagonals ---------------------------------------------------------------------------------------------------

Array diag(const Array& v, const DiagOptions& options) {
  if (v.ndim() == 2) return diagonal(v, {.offset = options.k});
  if (v.ndim() != 1)
    throw ValueError(concat("diag: an array of one or two dimensions is needed, got ", to_string(v.type())));
  const int64_t k = options.k, size = v.size() + std::abs(k);
  Array zero = lax::zeros(v.type().with_shape({}));
  Array rows = lax::pad(v, zero, {{std::max<int64_t>(0, -k), std::max<int64_t>(0, k), 0}});
  Array eye_size = eye(size, {.k = k, .dtype = DType::bool_});
  return where(eye_size, lax::expand_dims(rows, {1}), zero);
}

Array diagflat(const Array& v, const DiagOptions& options) {
  Array flat = ravel(v);
  return diag(lax::convert_element_type(flat, flat.dtype(), false), options);
}

Array diagonal(const Array& a, const DiagonalOptions& options) {
  if (a.ndim() < 2)
    throw ValueError(concat("diagonal: an array of at least two dimensions is needed, got ", to_string(a.type())));
  Array x = moveaxis(a, {options.axis1, options.axis2}, {-2, -1});
  const int64_t offset = options.offset;
  const int64_t size = std::max<int64_t>(
      0, std::min(x.shape(-2) + std::min<int64_t>(offset, 0), x.shape(-1) - std::max<int64_t>(offset, 0)));
  Array near = counting_array(size), far = near + std::abs(offset);
  return offset >= 0 ? x(ellipsis, near, far) : x(ellipsis, far, near);
}

Array trace(const Array& a, const TraceOptions& options) {
  if (canonical_axis("trace", options.axis1, a.ndim()) == canonical_axis("trace", options.axis2, a.ndim())) {
    throw ValueError(concat("trace: axis1 and axis2 can not be same, got ", options.axis1, " and ", options.axis2));
  }
  if (options.offset.ndim() != 0 || !is_integer(options.offset.dtype())) {
    throw ValueError(concat("trace: offset must be an integer, got ", to_string(options.offset.type())));
  }
  Array x = moveaxis(a, {options.axis1, options.axis2}, {-2, -1});
  Array on_diagonal = eye(x.shape(-2), {.M = x.shape(-1), .k = options.offset, .dtype = DType::bool_});
  return sum(where(on_diagonal, x, lax::zeros_like(x)), {.axis = {-2, -1}, .dtype = options.dtype});
}

Arrays diag_indices(int64_t n, int64_t ndim) {
  if (n < 0) throw ValueError(concat("diag_indices: n must not be negative, got ", n));
  if (ndim < 0) throw ValueError(concat("diag_indices: ndim must not be negative, got ", ndim));
  return Arrays(static_cast<std::size_t>(ndim), counting_array(n));
}

Arrays diag_indices_from(const Array& arr) {
  if (arr.ndim() < 2) {
    throw ValueError(
        concat("diag_indices_from: an array of at least two dimensions is needed, got ", to_string(arr.type())));
  }
  for (int64_t size : arr.shape()) {
    if (size == arr.shape(0)) continue;
    throw ValueError(concat("diag_indices_from: all dimensions must be of equal length, got ", tuple(arr.shape())));
  }
  return diag_indices(arr.shape(0), arr.ndim());
}

Array fill_diagonal(const Array& a, const Array& val, const FillDiagonalOptions& options) {
  if (options.inplace)
    throw NotImplementedError("fill_diagonal: arrays are immutable; pass inplace=False to get a changed copy");
  if (options.wrap) throw NotImplementedError("fill_diagonal: wrap=True is not implemented");
  if (a.ndim() < 2)
    throw ValueError(concat("fill_diagonal: an array of at least two dimensions is needed, got ", to_string(a.type())));
  const Shape& shape = a.shape();
  if (a.ndim() > 2 && std::any_of(shape.begin(), shape.end(), [&](int64_t size) { return size != shape[0]; })) {
    throw ValueError(concat("fill_diagonal: all dimensions must be of equal length, got ", tuple(shape)));
  }
  const int64_t size = *std::min_element(shape.begin(), shape.end());
  std::vector<Index> places;
  for (Array& index : diag_indices(size, a.ndim())) places.emplace_back(std::move(index));
  return IndexUpdate(a, places).set(val.ndim() == 0 ? val : tiled_to_size(ravel(val), size));
}

// ---- triangles ---------------------------------------------------------------------------------------------------

namespace {

Array triangle_of(const char* name, const Array& m, int64_t k, bool lower) {
  if (m.ndim() < 2)
    throw ValueError(concat(name, ": an array of at least two dimensions is needed, got ", to_string(m.type())));
  const Shape lead(m.shape().begin(), m.shape().end() - 2);
  Array mask =
      lax::broadcast(tri(m.shape(-2), {.M = m.shape(-1), .k = lower ? k : k - 1, .dtype = DType::bool_}), lead);
  return lower ? lax::select(mask, m, lax::zeros_like(m)) : lax::select(mask, lax::zeros_like(m), m);
}

// Rows and columns of the entries of one triangle, row by row.
std::pair<Array, Array> triangle_indices(const char* name, int64_t rows, int64_t columns, int64_t k, bool lower) {
  if (rows < 0 || columns < 0) {
    throw ValueError(concat(name, ": n and m must not be negative, got ", rows, " and ", columns));
  }
  std::vector<int64_t> row, column;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t from = lower ? 0 : std::clamp<int64_t>(i + k, 0, columns);
    const int64_t to = lower ? std::clamp<int64_t>(i + k + 1, 0, columns) : columns;
    for (int64_t j = from; j < to; ++j) {
      row.push_back(i);
      column.push_back(j);
    }
  }
  return {capibara::array<int64_t>(row), capibara::array<int64_t>(column)};
}

}  // namespace

Array tril(const Array& m, const DiagOptions& options) { return triangle_of("tril", m, options.k, true); }
Array triu(const Array& m, const DiagOptions& options) { return triangle_of("triu", m, options.k, false); }

std::pair<Array, Array> tril_indices(int64_t n, const TriangleOptions& options) {
  return triangle_indices("tril_indices", n, options.m.value_or(n), options.k, true);
}
std::pair<Array, Array> triu_indices(int64_t n, const TriangleOptions& options) {
  return triangle_indices("triu_indices", n, options.m.value_or(n), options.k, false);
}
std::pair<Array, Array> tril_indices_from(const Array& arr, const DiagOptions& options) {
  if (arr.ndim() != 2) throw ValueError(concat("tril_indices_from: a matrix is needed, got ", to_string(arr.type())));
  return tril_indices(arr.shape(0), {.k = options.k, .m = arr.shape(1)});
}
std::pair<Array, Array> triu_indices_from(const Array& arr, const DiagOptions& options) {
  if (arr.ndim() != 2) throw ValueError(concat("triu_indices_from: a matrix is needed, got ", to_string(arr.type())));
  return triu_indices(arr.shape(0), {.k = options.k, .m = arr.shape(1)});
}

std::pair<Array, Array> mask_indices(int64_t n, const std::function<Array(const Array&)>& mask_func,
                                     const MaskIndicesOptions& options) {
  Array mask = mask_func(lax::ones(sample_type(default_float(), {n, n})));
  if (mask.ndim() != 2)
    throw ValueError(concat("mask_indices: mask_func must return a matrix, got ", to_string(mask.type())));
  Arrays both = nonzero(mask, {.size = options.size});
  return {both[0], both[1]};
}

}  // namespace capibara::jax::numpy
