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
std::vector<Entry> quantization_kernels();
std::vector<Entry> selective_scan_kernels();
std::vector<Entry> ssd_kernels();
std::vector<Entry> gelu_dropout_kernels();

// The program with the kernels that apply to it. In a program for several devices only those inside of shard_map:
// XLA cannot partition a kernel.
Program call_kernels(const Program& program, bool several_devices);

// The names of the kernels that a program calls, in order, each as often as it is called.
std::vector<std::string> kernel_names(const Program& program);

// False if the environment has CAPIBARA_TPU_KERNELS=0.
bool are_kernels_enabled();

// Finishes a kernel and binds its call; counts the bytes of its cost.
Arrays call(Kernel& kernel, const Arrays& operands);

// Whether matmuls of float32 keep all bits: default_matmul_precision is highest or float32.
bool keeps_all_bits();

ArrayType array_type(DType dtype, Shape shape);

// ceil(a / b) of positive numbers.
inline int64_t blocks_of(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The largest block that divides a size: a sum over it must not reach beyond the array. 0: there is none.
inline int64_t dividing_block(int64_t size) {
  for (const int64_t block : {1024, 512, 256, 128}) {
    if (size % block == 0) return block;
  }
  return size <= 1024 ? size : 0;
}

}  // namespace capibara::mosaic
