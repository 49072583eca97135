// The equations that CUDA kernels compute, and how they are called: each kernel's file declares its own, next to its
// code.
#pragma once

#include <capibara/primitive.h>

#include <optional>

namespace capibara::cuda {

// An equation as a call of a kernel.
struct KernelCall {
  std::string target;
  std::string settings;  // MLIR text of the call's attributes
  Types scratch;         // unused results after the equation's own
};

struct ClaimArgs {
  std::span<const ArrayType> inputs;
  const Attrs& attrs;
  // Properties of the GPU; defaults if there is none.
  int64_t multiprocessors;
  int64_t shared_memory;  // limit in bytes per block
};
// nullopt if the kernel does not take these operands: the equation remains the composition that defines it.
using Claim = std::optional<KernelCall> (*)(const ClaimArgs&);

struct ClaimEntry {
  const char* primitive;
  Claim claim;
};
using Claims = std::vector<ClaimEntry>;

std::string float_setting(const char* name, double value);  // `name = 1.0e-05 : f32`

}  // namespace capibara::cuda
