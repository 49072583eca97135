// Kernels outside of generated code: a primitive made ready once for fixed types, then run on raw buffers.
#pragma once

#include <capibara/primitive.h>

#include <cstddef>
#include <functional>

#include <vector>
#include "core/runtime/thread_pool.h"

namespace capibara::cpu {

// Runs on raw buffers: inputs, then outputs. No output overlaps an input, but the result of a scatter may be the very
// buffer of its operand: then nothing is copied. Raises what the primitive raises. May run on several threads at once.
using HostKernel = std::function<void(std::byte* const* buffers)>;

// The fastest kernel there is for these types; where there is none of its own, the reference kernel behind raw buffers,
// or the primitive's evaluation rule. Raises NotImplementedError for a primitive that nothing evaluates.
// `constants`: inputs that hold the same values in every run, of which a kernel may keep another form; empty for none.
HostKernel host_kernel(const Primitive& primitive, const Types& inputs, const Types& outputs, const Attrs& attrs,
                       const std::vector<bool>& constants = {});

// A matmul that tells which rows of its result, [batch, rows, columns] taken as [batch * rows, columns], are complete:
// each row once, by the thread that computed the last of it, and before run returns.
using RowsDone = FunctionRef<void(int64_t first, int64_t count)>;
struct ProductKernel {
  int64_t rows = 0;
  std::function<void(std::byte* const* buffers, const RowsDone& done)> run;  // empty: not for these types
};
// For a dot_general that finishes its rows in blocks of about the size of a cache.
ProductKernel product_kernel(const Types& inputs, const Types& outputs, const Attrs& attrs,
                             const std::vector<bool>& constants);

// The primitive that a kernel leaves to the reference backend (or to its evaluation rule); null for kernels of this
// backend.
const Primitive* reference_primitive(const HostKernel& kernel);

// The reference kernel (or the evaluation rule) alone: what host_kernel is compared with.
HostKernel reference_kernel(const Primitive& primitive, const Types& inputs, const Types& outputs, const Attrs& attrs);

}  // namespace capibara::cpu
