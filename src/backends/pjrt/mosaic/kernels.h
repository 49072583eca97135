// TPU kernels in place of fused operations: what each becomes, and the programs in which they are called.
#pragma once

#include <capibara/primitive.h>

#include "backends/pjrt/mosaic/kernel.h"

namespace capibara::mosaic {

// A rule that composes an equation of a call of a TPU kernel; no results: the kernel does not take these operands.
struct Entry {
  const char* primitive;
  LowerRule rule;
};
std::vector<Entry> norm_kernels();
std::vector<Entry> attention_kernels();
std::vector<Entry> grouped_matmul_kernels();

// The program with the kernels that apply to it. In a program for several devices only those inside of shard_map:
// XLA cannot partition a kernel.
Program call_kernels(const Program& program, bool several_devices);

// False if the environment has CAPIBARA_TPU_KERNELS=0.
bool are_kernels_enabled();

// Finishes a kernel and binds its call; counts the bytes of its cost.
Arrays call(Kernel& kernel, const Arrays& operands);

// Whether matmuls of float32 keep all bits: default_matmul_precision is highest or float32.
bool keeps_all_bits();

ArrayType array_type(DType dtype, Shape shape);

// ceil(a / b) of positive numbers.
inline int64_t blocks_of(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace capibara::mosaic
