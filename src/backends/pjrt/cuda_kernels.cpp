// The kernels of the CUDA module: loading, registering, and the calls they stand for.
#include "backends/pjrt/cuda_kernels.h"

#include <dlfcn.h>

#include <capibara/error.h>

#include <algorithm>
#include <cstdio>

#include "backends/cuda/kernels.h"
#include "kernels/layer_norm.h"

namespace capibara::pjrt {

namespace {

// A thread holds up to four 16-byte pieces of a row, a block has up to 512 threads.
bool fits(const ArrayType& rows) {
  if (rows.dtype != DType::float32 && rows.dtype != DType::bfloat16) return false;
  const int64_t piece = 16 / storage_size(rows.dtype), columns = rows.shape.back();
  return columns > 0 && columns % piece == 0 && columns / piece <= 4 * 512;
}

std::string real_text(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9e", value);
  return text;
}

// Null where there is no module, or one of another version.
const cuda::KernelTable* module_table() {
  static const cuda::KernelTable* table = [] {
    void* library = dlopen(cuda::module_file, RTLD_NOW | RTLD_LOCAL);
    auto function = library ? reinterpret_cast<cuda::TableFunction>(dlsym(library, cuda::table_symbol)) : nullptr;
    const cuda::KernelTable* found = function ? function() : nullptr;
    return found && found->version == cuda::table_version ? found : nullptr;
  }();
  return table;
}

// Blocks of the backward kernel: enough to fill the GPU, few enough that their sums are little memory.
int64_t block_count(const ArrayType& rows) {
  static const int64_t asked = module_table() ? module_table()->multiprocessors() : 0;
  const int64_t multiprocessors = asked > 0 ? asked : 128;  // a text made where there is no GPU: any number is right
  const int64_t threads = std::max<int64_t>(32, rows.shape.back() * storage_size(rows.dtype) / 16);
  const int64_t blocks = multiprocessors * std::clamp<int64_t>(1024 / threads, 1, 8);
  return std::max<int64_t>(1, std::min(blocks, rows.size() / std::max<int64_t>(1, rows.shape.back())));
}

}  // namespace

std::optional<KernelCall> kernel_call(const Primitive& primitive, std::span<const ArrayType> inputs, const Attrs& attrs) {
  if (primitive == kernels::layer_norm_primitive() && fits(inputs[0])) {
    return KernelCall{"capibara_layer_norm", concat("epsilon = ", real_text(attrs.real("epsilon")), " : f32"), {}};
  }
  if (primitive == kernels::layer_norm_grad_primitive() && fits(inputs[1])) {
    ArrayType sums;
    sums.shape = {2, block_count(inputs[1]), inputs[1].shape.back()};
    return KernelCall{"capibara_layer_norm_grad", "", {sums}};
  }
  return std::nullopt;
}

bool has_cuda_kernels(const Client& client) {
  static AskedOnce answers;
  return client.plugin().takes_gpu_calls() && answers(client.plugin(), [](const Plugin& plugin) {
    const cuda::KernelTable* table = module_table();
    for (int32_t i = 0; table && i < table->count; ++i) {
      const cuda::KernelRecord& kernel = table->records[i];
      plugin.register_gpu_call(kernel.target, reinterpret_cast<void*>(kernel.handler), kernel.traits);
    }
    return table != nullptr;
  });
}

}  // namespace capibara::pjrt
