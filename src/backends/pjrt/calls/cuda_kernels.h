// This library's CUDA kernels inside the programs of a plugin: which equations they compute, and how they are called.
#pragma once

#include "backends/cuda/claims.h"
#include "backends/pjrt/client.h"

namespace capibara::pjrt {

// nullopt if no kernel takes these operands.
std::optional<cuda::KernelCall> kernel_call(const Primitive& primitive, std::span<const ArrayType> inputs,
                                            const Attrs& attrs);

// Loads the module of kernels and registers each with the plugin, once. False if the plugin is not CUDA's or there is
// no module.
bool has_cuda_kernels(const Client& client);

}  // namespace capibara::pjrt
