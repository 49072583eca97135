// Reads the frame of a call for the kernels' handlers: operands, results and attributes.
#pragma once

#include <cstring>

#include "backends/pjrt/calls/ffi.h"

namespace capibara::cuda {

namespace ffi = pjrt::ffi;

enum ElementType : int32_t { f16 = 10, f32 = 11, bf16 = 16 };  // XLA_FFI_DataType

inline const ffi::Buffer& operand(const ffi::CallFrame* frame, int index) {
  return *static_cast<const ffi::Buffer*>(frame->operands.values[index]);
}
inline const ffi::Buffer& result(const ffi::CallFrame* frame, int index) {
  return *static_cast<const ffi::Buffer*>(frame->results.values[index]);
}

template <class T>
T* data_of(const ffi::Buffer& buffer) {
  return static_cast<T*>(buffer.data);
}

inline int64_t integer_attribute(const ffi::CallFrame* frame, const char* name, int64_t otherwise) {
  if (const void* value = ffi::find_attribute(frame, name))
    std::memcpy(&otherwise, static_cast<const ffi::Scalar*>(value)->value, sizeof otherwise);
  return otherwise;
}

inline float float_attribute(const ffi::CallFrame* frame, const char* name, float otherwise) {
  if (const void* value = ffi::find_attribute(frame, name))
    std::memcpy(&otherwise, static_cast<const ffi::Scalar*>(value)->value, sizeof otherwise);
  return otherwise;
}

// A buffer as rows of its last dimension.
struct Extent {
  int64_t rows = 1;
  int columns = 1;
};

inline Extent extent_of(const ffi::Buffer& buffer) {
  Extent extent;
  for (int64_t i = 0; i + 1 < buffer.rank; ++i) extent.rows *= buffer.dims[i];
  extent.columns = static_cast<int>(buffer.dims[buffer.rank - 1]);
  return extent;
}

}  // namespace capibara::cuda
