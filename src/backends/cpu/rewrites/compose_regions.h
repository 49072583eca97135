// Operations with programs of scalars (reduce, windows, scatter, sort), composed of loops and arrays that compile.
//
// A region without data-dependent control flow is applied to whole arrays at once. One with a loop or a branch is
// applied to one element at a time in a scan: batched, a branch that an element does not take might never end.
#pragma once

#include "lax/reduce/monoid.h"

namespace capibara::cpu {

// How to compose the equation; empty if generated code or a kernel of this backend runs it directly.
LowerRule region_rule(const Program& program, const Equation& equation);
// region_rule without kernels.
LowerRule region_rule_without_kernels(const Program& program, const Equation& equation);

namespace regions {

// Applies the region to each element of arrays of one shape.
Arrays apply_each(const Program& region, const Arrays& inputs);

// ---- one rule per operation ----
Arrays reduce(std::span<const Array> inputs, const Attrs& attrs);
Arrays reduce_window(std::span<const Array> inputs, const Attrs& attrs);
Arrays select_and_scatter(std::span<const Array> inputs, const Attrs& attrs);
Arrays scatter(std::span<const Array> inputs, const Attrs& attrs);
Arrays sort(std::span<const Array> inputs, const Attrs& attrs);
// By exchanges alone: as stable as the comparator requires, in O(n log^2 n) comparisons.
Arrays sort_by_exchanges(const Program& comparator, std::span<const Array> inputs, int64_t axis);
// reduce_window_sum and related primitives: starting from the identity.
LowerRule named_window(Monoid monoid);

}  // namespace regions

}  // namespace capibara::cpu
