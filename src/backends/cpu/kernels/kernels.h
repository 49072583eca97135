// The list of the CPU backend's own kernels, family by family.
#pragma once

#include <string_view>
#include <vector>

#include "backends/cpu/kernels/host.h"

namespace capibara::cpu {

// The equation a kernel is made for; the references are valid only while it is being made.
struct KernelRequest {
  const Types& inputs;
  const Types& outputs;
  const Attrs& attrs;
  const std::vector<bool>& constants;  // inputs with the same values in every run; may be empty

  bool is_constant(std::size_t input) const { return input < constants.size() && constants[input]; }
};
// Prepares a kernel; an empty function leaves these types to the reference kernel.
using KernelMaker = HostKernel (*)(const KernelRequest&);

struct KernelMakerEntry {
  const char* primitive;
  KernelMaker make;
  bool in_programs = true;    // false: generated code is faster; the kernel is used only outside jit
  bool skips_unread = false;  // results that nothing reads are not computed: their types have no elements
};
using KernelMakers = std::vector<KernelMakerEntry>;

KernelMaker find_kernel_maker(const Primitive& primitive);  // null if there is none
// True if a compiled program calls a kernel for this equation, by its types.
bool has_own_kernel(const Program& program, const Equation& equation);
// True if that kernel skips results that nothing reads.
bool skips_unread(const Program& program, const Equation& equation);

}  // namespace capibara::cpu
