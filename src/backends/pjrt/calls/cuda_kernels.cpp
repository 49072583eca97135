// The kernels of the CUDA module: loading, registration, and the calls that stand for them.
#include "backends/pjrt/calls/cuda_kernels.h"

#include <dlfcn.h>

#include <capibara/error.h>

#include <cstdio>
#include <unordered_map>

#include "backends/cuda/kernels.h"
#include "fused_kernels.h"

namespace capibara::cuda {

#define CAPIBARA_DECLARE(name) Claims name##_claims();
CAPIBARA_CUDA_KERNELS(CAPIBARA_DECLARE)
#undef CAPIBARA_DECLARE

std::string float_setting(const char* name, double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9e", value);
  return concat(name, " = ", text, " : f32");
}

}  // namespace capibara::cuda

namespace capibara::pjrt {

namespace {

using ClaimTable = std::unordered_map<const PrimitiveRecord*, cuda::Claim>;

const ClaimTable& claims() {
  static const ClaimTable table = [] {
    ClaimTable all;
#define CAPIBARA_ADD(name)                                    \
  for (const cuda::ClaimEntry& entry : cuda::name##_claims()) \
    all.emplace(&primitive(entry.primitive).record(), entry.claim);
    CAPIBARA_CUDA_KERNELS(CAPIBARA_ADD)
#undef CAPIBARA_ADD
    return all;
  }();
  return table;
}

// Null if there is no module, or only one of another version.
const cuda::KernelTable* module_table() {
  static const cuda::KernelTable* table = [] {
    void* library = dlopen(cuda::module_file, RTLD_NOW | RTLD_LOCAL);
    auto function = library ? reinterpret_cast<cuda::TableFunction>(dlsym(library, cuda::table_symbol)) : nullptr;
    const cuda::KernelTable* found = function ? function() : nullptr;
    return found && found->version == cuda::table_version ? found : nullptr;
  }();
  return table;
}

int64_t multiprocessors() {
  static const int64_t size = module_table() ? module_table()->multiprocessors() : 0;
  return size > 0 ? size : 128;  // a text written without a GPU: any number will do
}

int64_t shared_memory() {
  static const int64_t size = module_table() ? module_table()->shared_memory() : 0;
  return size > 0 ? size : 227 << 10;  // Hopper's
}

}  // namespace

std::optional<cuda::KernelCall> kernel_call(const Primitive& primitive, std::span<const ArrayType> inputs,
                                            const Attrs& attrs) {
  const auto found = claims().find(&primitive.record());
  return found == claims().end() ? std::nullopt : found->second({inputs, attrs, multiprocessors(), shared_memory()});
}

bool has_cuda_kernels(const Client& client) {
  static AnswersByPlugin answers;
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
