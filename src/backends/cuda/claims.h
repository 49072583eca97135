// Which equations the CUDA kernels take over, and how they are called: said in the file of each kernel, beside its
// code.
#pragma once

#include <capibara/primitive.h>

#include <optional>

namespace capibara::cuda {

// An equation as a call of a kernel.
struct KernelCall {
  std::string target;
  std::string settings;  // MLIR text of the call's attributes
  Types scratch;         // results behind the equation's own that no one reads
};

struct ClaimArgs {
  std::span<const ArrayType> inputs;
  const Attrs& attrs;
  // Of the GPU; some numbers where there is none.
  int64_t multiprocessors;
  int64_t shared_memory;  // bytes that a block may have
};
// Nothing where the kernel does not take these operands: the equation stays the composition that defines it.
using Claim = std::optional<KernelCall> (*)(const ClaimArgs&);

struct ClaimEntry {
  const char* primitive;
  Claim claim;
};
using Claims = std::vector<ClaimEntry>;

std::string float_setting(const char* name, double value);  // `name = 1.0e-05 : f32`

}  // namespace capibara::cuda
