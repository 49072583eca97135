// Kernels outside generated code: a primitive prepared once for fixed types, then run on raw buffers.
#pragma once

#include <capibara/primitive.h>

#include <cstddef>
#include <functional>

#include <vector>
#include "core/runtime/thread_pool.h"

namespace capibara::cpu {

// Runs on raw buffers: inputs, then outputs. Outputs do not overlap inputs, except that a scatter's result may be the
// buffer of its operand: then nothing is copied. Raises the primitive's errors. May run on several threads at once.
using HostKernel = std::function<void(std::byte* const* buffers)>;

// The fastest kernel for these types; without one, the reference kernel behind raw buffers, or the primitive's
// evaluation rule. Raises NotImplementedError for a primitive that has none of these.
// `constants`: inputs with the same values in every run, which a kernel may cache in another form; empty for none.
HostKernel host_kernel(const Primitive& primitive, const Types& inputs, const Types& outputs, const Attrs& attrs,
                       const std::vector<bool>& constants = {});

// A matmul that reports which rows of its result, [batch, rows, columns] viewed as [batch * rows, columns], are
// complete: each row once, from the thread that computed the last part of it, before run returns.
using RowsDone = FunctionRef<void(int64_t first, int64_t count)>;
struct ProductKernel {
  int64_t rows = 0;
  std::function<void(std::byte* const* buffers, const RowsDone& done)> run;  // empty: not supported for these types
};
// For a dot_general that completes its rows in blocks of about the size of a cache.
ProductKernel product_kernel(const Types& inputs, const Types& outputs, const Attrs& attrs,
                             const std::vector<bool>& constants);

// The primitive that a kernel leaves to the reference backend (or to its evaluation rule); null for kernels of this
// backend.
const Primitive* reference_primitive(const HostKernel& kernel);

// Only the reference kernel (or the evaluation rule): the baseline for host_kernel.
HostKernel reference_kernel(const Primitive& primitive, const Types& inputs, const Types& outputs, const Attrs& attrs);

}  // namespace capibara::cpu
