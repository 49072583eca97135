// DLPack: exchanging arrays with other libraries without copying.
//
// The structs follow the DLPack 0.8 ABI (unversioned capsules), which NumPy, PyTorch and JAX all read and write.
#pragma once

#include <capibara/array.h>

#include <cstdint>

namespace capibara {

struct DLDevice {
  int32_t device_type;  // 1: CPU
  int32_t device_id;
};

struct DLDataType {
  uint8_t code;  // 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool
  uint8_t bits;
  uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: row-major
  uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};

namespace jax::dlpack {

// Exports an array as a DLPack tensor that shares its memory; the consumer must not write to it. The tensor keeps
// the memory alive until its deleter runs.
DLManagedTensor* to_dlpack(const Array& array);

// Imports a DLPack tensor and takes ownership of it. Row-major memory is shared, any other layout is copied.
Array from_dlpack(DLManagedTensor* tensor);

}  // namespace jax::dlpack
}  // namespace capibara
