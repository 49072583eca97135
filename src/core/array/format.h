// Array data as text: NumPy's layout of arrays, jax's repr, and Python's spelling of scalars.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <capibara/dtype.h>

namespace capibara {

// NumPy's print options under their own names.
struct FormatOptions {
  std::int64_t prefix_width = 0;  // columns already taken on the first line; later lines are indented by it
  std::int64_t suffix_width = 0;  // columns to leave free at the end of the last line
  std::int64_t threshold = 1000;  // more elements than this are summarised
  std::int64_t edgeitems = 3;     // shown at each end of a summarised dimension
  int precision = 8;              // fractional digits at most
  std::int64_t linewidth = 75;
  std::string_view separator = " ";
};

// numpy.array2string. `data` is dense and row-major; a key is its uint32 words along a new last axis.
std::string format_array(DType dtype, std::span<const std::int64_t> shape, const void* data,
                         const FormatOptions& options = {});

// repr of a jax Array: Array([1., 2.], dtype=float32).
std::string array_repr(DType dtype, std::span<const std::int64_t> shape, const void* data, bool weak_type = false);

// str of a jax Array: [1. 2.], and 1.0 for rank 0.
std::string array_str(DType dtype, std::span<const std::int64_t> shape, const void* data);

// Python's str of the value held by one element, as jaxpr text shows literals: 1.0,
// 0.10000000149011612, inf, True, 3, (1+2j).
std::string format_scalar(DType dtype, const void* data);

// Python's repr of a float: shortest digits that read back equal, exponent from 1e16 and below 1e-4.
std::string python_float(double value);

// Python's repr of a shape: (), (3,), (2, 3).
std::string shape_tuple(std::span<const std::int64_t> shape);

}  // namespace capibara
