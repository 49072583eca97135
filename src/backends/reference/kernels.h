// The reference backend: plain loops that define what each primitive computes.
#pragma once

#include <capibara/config.h>
#include <capibara/primitive.h>

namespace capibara::reference {

struct KernelArgs {
  std::span<const Array> inputs;  // concrete, on the host
  const Types& output_types;
  const Attrs& attrs;
};
using Kernel = Arrays (*)(const KernelArgs&);

struct KernelEntry {
  const char* primitive;
  Kernel kernel;
};
using KernelList = std::vector<KernelEntry>;

KernelList elementwise_kernels();
KernelList shape_kernels();
KernelList index_kernels();
KernelList reduce_kernels();
KernelList window_kernels();
KernelList sort_kernels();
KernelList contract_kernels();
KernelList control_kernels();
KernelList random_kernels();
KernelList linalg_kernels();
KernelList fft_kernels();
KernelList effect_kernels();

Kernel find_kernel(const Primitive& primitive);  // null if absent

// The configuration with this platform: the operations of a program run here too, whatever platform is configured.
Config own_platform();
// Evaluates a program on concrete arrays, equation by equation; values die after their last use.
Arrays interpret(const Program& program, std::span<const Array> inputs);

// Gives values the weak types that a program or an equation promises: a branch, an empty loop or a program made strong
// may yield others.
Arrays with_weak_types(Arrays values, const Types& types);

// A new concrete array of this type with its writable bytes (uninitialised).
struct Output {
  Array array;
  std::byte* data;
};
Output allocate(const ArrayType& type);

// Row-major strides in elements.
Ints row_major_strides(std::span<const int64_t> shape);
// Advances a multi-index through a shape in row-major order; false after the last one.
bool next_index(std::span<int64_t> index, std::span<const int64_t> shape);

}  // namespace capibara::reference
