// The table of the CUDA module: one record per kernel that XLA programs may call by name.
#pragma once

#include <cstdint>

#include "backends/pjrt/calls/ffi.h"

namespace capibara::cuda {

struct KernelRecord {
  const char* target;  // the name of the foreign call
  void* (*handler)(pjrt::ffi::CallFrame*);
  uint32_t traits;  // whether calls may be replayed as a CUDA graph, without the handler
};

// The handlers of one file, NAME_handlers() for NAME.cu in a folder of src/backends/cuda; they live as long as the
// module.
struct Handlers {
  const KernelRecord* records;
  int32_t count;
};

struct KernelTable {
  int32_t version;
  int32_t count;
  const KernelRecord* records;
  // Of the first GPU; 0: unknown.
  int32_t (*multiprocessors)();
  int32_t (*shared_memory)();  // limit in bytes per block
};

inline constexpr int32_t table_version = 3;
inline constexpr const char* module_file = "libcapibara_cuda.so";
// The module exports one function of this name and type.
inline constexpr const char* table_symbol = "capibara_cuda_kernels";
using TableFunction = const KernelTable* (*)();

}  // namespace capibara::cuda
