// What the derivatives of reductions, windows and cumulative operations share.
#pragma once

#include <capibara/primitive.h>

#include "trace/trace.h"

namespace capibara {

// Applies a program of scalars to arrays of equal shape, element by element, under the current trace.
Arrays apply_region(const Program& region, std::span<const Array> inputs);

// The jvp of folding operands over `axes` as a balanced tree of `combine` (first halves..., second halves...).
JvpResult reduction_tree_jvp(const FlatFunction& combine, const Arrays& init_values, std::span<const Array> primals,
                             std::span<const Array> tangents, const Ints& axes);

}  // namespace capibara
