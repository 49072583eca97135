// The list of the CPU backend's own kernels, family by family.
#pragma once

#include <string_view>
#include <vector>

#include "backends/cpu/kernels/host.h"

namespace capibara::cpu {

// What a kernel is made for; the references live during the making only.
struct KernelRequest {
  const Types& inputs;
  const Types& outputs;
  const Attrs& attrs;
  const std::vector<bool>& constants;  // inputs with the same values in every run; may be empty

  bool is_constant(std::size_t input) const { return input < constants.size() && constants[input]; }
};
// Prepares a kernel; an empty function says that these types are left to the reference kernel.
using KernelMaker = HostKernel (*)(const KernelRequest&);

struct KernelMakerEntry {
  const char* primitive;
  KernelMaker make;
  bool in_programs = true;    // false: generated code is faster, the kernel serves outside of jit alone
  bool skips_unread = false;  // leaves out results that nothing reads: their types come without elements
};
using KernelMakers = std::vector<KernelMakerEntry>;

KernelMaker find_kernel_maker(const Primitive& primitive);  // null where absent
// Whether a compiled program calls a kernel for an equation, by its types.
bool has_own_kernel(const Program& program, const Equation& equation);
// Whether that kernel leaves out results that nothing reads.
bool skips_unread(const Program& program, const Equation& equation);

}  // namespace capibara::cpu
