// Our own CUDA kernels inside the programs of a plugin: which equations they take over, and how they are called.
#pragma once

#include <optional>

#include "backends/pjrt/client.h"

#include <capibara/primitive.h>

namespace capibara::pjrt {

// An equation as a call of a kernel: `scratch` are results behind the equation's own that nobody reads.
struct KernelCall {
  std::string target;
  std::string settings;  // MLIR text of the call's attributes
  Types scratch;
};
// Nothing where no kernel takes these operands.
std::optional<KernelCall> kernel_call(const Primitive& primitive, std::span<const ArrayType> inputs, const Attrs& attrs);

// Loads the module of kernels and tells the plugin of each, once. False where the plugin is not CUDA's or there is no module.
bool has_cuda_kernels(const Client& client);

}  // namespace capibara::pjrt
