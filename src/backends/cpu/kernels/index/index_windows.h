// Common to gather and scatter: the offsets of windows given by an array of indices, and the types they are moved as.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "backends/cpu/kernels/gemm/gemm.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/visit_bytes.h"
#include "backends/reference/kernels.h"
#include "core/array/element.h"
#include "lax/shape/shape.h"

namespace capibara::cpu {

// Offsets [first, first + count) of an axis.
inline void positions(const Axis& axis, int64_t first, int64_t count, int64_t* out) {
  if (axis.is_regular()) {
    int64_t at = axis.at(first);
    for (int64_t i = 0, stride = axis.stride(); i < count; ++i, at += stride) out[i] = at;
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = axis.at(first + i);
  }
}

// The windows of one gather or scatter. "Operand" is the large array, "windows" the gather's output or scatter's
// updates.
struct WindowPlan {
  DType index_dtype;
  int64_t vector_size = 0;
  bool clamp = false;  // move windows that are out of bounds inside
  struct Coordinate {
    int64_t greatest, stride;
  };
  std::vector<Coordinate> coordinates;
  Axis batch_in_windows, batch_in_operand;  // by index vector
  // A window: outer rows, each a run of elements with constant strides in the operand and in the windows.
  Axis rows_in_operand, rows_in_windows;
  int64_t run = 1, operand_step = 1, window_step = 1;
  bool empty_windows = false;
  bool disjoint = true;  // windows that start at different offsets share no element

  WindowPlan(const GatherDimensionNumbers& dims, const Ints& sizes, const Shape& operand, const ArrayType& indices,
             const Shape& windows, bool clamp_inside)
      : index_dtype(indices.dtype), vector_size(indices.shape.back()), clamp(clamp_inside) {
    Ints operand_strides = reference::row_major_strides(operand),
         window_strides = reference::row_major_strides(windows);
    for (int64_t dim : dims.start_index_map) {
      coordinates.push_back({at(operand, dim) - at(sizes, dim), at(operand_strides, dim)});
      disjoint = disjoint && at(sizes, dim) == 1;
    }
    Shape batch(indices.shape.begin(), indices.shape.end() - 1);
    Ints in_windows, in_operand(batch.size(), 0);
    for (int64_t dim : other_dims(static_cast<int64_t>(windows.size()), dims.offset_dims))
      in_windows.push_back(at(window_strides, dim));
    for (std::size_t k = 0; k < dims.operand_batching_dims.size(); ++k) {
      in_operand[static_cast<std::size_t>(dims.start_indices_batching_dims[k])] +=
          at(operand_strides, dims.operand_batching_dims[k]);
    }
    batch_in_windows = Axis(batch, in_windows);
    batch_in_operand = Axis(batch, in_operand);
    // The window's own dimensions; dimensions that are contiguous in both arrays are merged.
    Ints shape, operand_steps, window_steps;
    std::size_t next = 0;
    for (int64_t i = 0; i < static_cast<int64_t>(operand.size()); ++i) {
      if (contains(dims.collapsed_slice_dims, i) || contains(dims.operand_batching_dims, i)) continue;
      int64_t dim = dims.offset_dims[next++], size = at(windows, dim);
      empty_windows = empty_windows || size == 0;
      if (size == 1) continue;
      if (!shape.empty() && operand_steps.back() == at(operand_strides, i) * size &&
          window_steps.back() == at(window_strides, dim) * size) {
        shape.back() *= size;
        operand_steps.back() = at(operand_strides, i);
        window_steps.back() = at(window_strides, dim);
      } else {
        shape.push_back(size);
        operand_steps.push_back(at(operand_strides, i));
        window_steps.push_back(at(window_strides, dim));
      }
    }
    if (!shape.empty()) {
      run = shape.back();
      operand_step = operand_steps.back();
      window_step = window_steps.back();
      for (Ints* list : {&shape, &operand_steps, &window_steps}) list->pop_back();
    }
    rows_in_operand = Axis(shape, operand_steps);
    rows_in_windows = Axis(shape, window_steps);
  }

  int64_t count() const { return empty_windows ? 0 : batch_in_windows.extent(); }
  int64_t rows() const { return rows_in_operand.extent(); }

  // Offsets in the operand of the windows of index vectors [first, first + count); -1 for those out of bounds.
  void places(const std::byte* indices, int64_t first, int64_t count, int64_t* out) const {
    positions(batch_in_operand, first, count, out);
    const int64_t skipped = first * vector_size;
    if (index_dtype == DType::int32) {
      add_coordinates(count, out, [from = reinterpret_cast<const int32_t*>(indices) + skipped](int64_t i) {
        return int64_t{from[i]};
      });
    } else if (index_dtype == DType::int64) {
      add_coordinates(count, out,
                      [from = reinterpret_cast<const int64_t*>(indices) + skipped](int64_t i) { return from[i]; });
    } else {
      add_coordinates(count, out, [this, indices, skipped](int64_t i) {
        const int64_t value = element_as_int64(index_dtype, indices, skipped + i);
        return is_unsigned(index_dtype) && value < 0 ? INT64_MAX : value;  // too large: the greatest
      });
    }
  }

  // The same in 32 bits, for operands of less than 2^32 - 1 elements: `nowhere` for windows out of bounds.
  static constexpr uint32_t nowhere = ~uint32_t{0};
  void short_places(const std::byte* indices, int64_t first, int64_t count, uint32_t* out) const {
    const int64_t skipped = first * vector_size;
    if (batch_in_operand.is_regular() && (index_dtype == DType::int32 || index_dtype == DType::int64)) {
      const auto stride = static_cast<uint32_t>(batch_in_operand.stride());
      if (stride == 0 && vector_size == 1 && coordinates.size() == 1) {
        if (index_dtype == DType::int32)
          set_short(reinterpret_cast<const int32_t*>(indices) + skipped, count, out);
        else
          set_short(reinterpret_cast<const int64_t*>(indices) + skipped, count, out);
        return;
      }
      uint32_t at = static_cast<uint32_t>(batch_in_operand.at(first));
      for (int64_t i = 0; i < count; ++i, at += stride) out[i] = at;
      if (index_dtype == DType::int32)
        add_short(reinterpret_cast<const int32_t*>(indices) + skipped, count, out);
      else
        add_short(reinterpret_cast<const int64_t*>(indices) + skipped, count, out);
      return;
    }
    int64_t found[64];
    for (int64_t i = 0; i < count; i += 64) {
      const int64_t some = std::min<int64_t>(64, count - i);
      places(indices, first + i, some, found);
      for (int64_t k = 0; k < some; ++k) out[i + k] = static_cast<uint32_t>(found[k]);  // -1 becomes `nowhere`
    }
  }

 private:
  // For index vectors of a single coordinate.
  template <class Index>
  void set_short(const Index* __restrict indices, int64_t count, uint32_t* __restrict out) const {
    const auto greatest =
        static_cast<Index>(std::min<int64_t>(coordinates[0].greatest, std::numeric_limits<Index>::max()));
    const auto stride = static_cast<uint32_t>(coordinates[0].stride);
    if (clamp) {
      for (int64_t i = 0; i < count; ++i)
        out[i] = static_cast<uint32_t>(std::max<Index>(0, std::min(indices[i], greatest))) * stride;
    } else {
      for (int64_t i = 0; i < count; ++i) {
        const bool inside = (indices[i] >= 0) & (indices[i] <= greatest);
        out[i] = inside ? static_cast<uint32_t>(indices[i]) * stride : nowhere;
      }
    }
  }

  template <class Index>
  void add_short(const Index* indices, int64_t count, uint32_t* out) const {
    for (std::size_t k = 0; k < coordinates.size(); ++k, ++indices) {
      if (vector_size == 1)
        add_short_column(coordinates[k], indices, std::integral_constant<int64_t, 1>{}, count, out);
      else
        add_short_column(coordinates[k], indices, vector_size, count, out);
    }
  }
  template <class Index, class Step>
  void add_short_column(const Coordinate& coordinate, const Index* __restrict indices, Step step, int64_t count,
                        uint32_t* __restrict out) const {
    const auto greatest = static_cast<Index>(std::min<int64_t>(coordinate.greatest, std::numeric_limits<Index>::max()));
    const auto stride = static_cast<uint32_t>(coordinate.stride);
    if (clamp) {
      for (int64_t i = 0; i < count; ++i)
        out[i] += static_cast<uint32_t>(std::max<Index>(0, std::min(indices[i * step], greatest))) * stride;
    } else {
      for (int64_t i = 0; i < count; ++i) {
        const Index start = indices[i * step];
        const bool inside = (start >= 0) & (start <= greatest) & (out[i] != nowhere);
        const uint32_t place = out[i] + static_cast<uint32_t>(start) * stride;
        out[i] = inside ? place : nowhere;
      }
    }
  }

  template <class Index>
  void add_coordinates(int64_t count, int64_t* out, Index&& index) const {
    for (std::size_t k = 0; k < coordinates.size(); ++k) {
      const auto [greatest, stride] = coordinates[k];
      const int64_t step = vector_size, at = static_cast<int64_t>(k);
      if (clamp) {
        for (int64_t i = 0; i < count; ++i)
          out[i] += std::max<int64_t>(0, std::min(index(i * step + at), greatest)) * stride;
      } else {
        for (int64_t i = 0; i < count; ++i) {
          const int64_t start = index(i * step + at);
          const uint64_t distance =
              static_cast<uint64_t>(start) * static_cast<uint64_t>(stride);  // may wrap if it is unused
          out[i] = out[i] < 0 || start < 0 || start > greatest ? -1 : out[i] + static_cast<int64_t>(distance);
        }
      }
    }
  }
};

inline constexpr int64_t chunk = 512;  // index vectors read at once

template <class T>
void copy_run(T* to, int64_t to_step, const T* from, int64_t from_step, int64_t count) {
  if (to_step == 1 && from_step == 1) {
    if (count == 1)
      *to = *from;
    else
      std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
  } else {
    for (int64_t i = 0; i < count; ++i) to[i * to_step] = from[i * from_step];
  }
}

}  // namespace capibara::cpu
