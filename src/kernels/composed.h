// Primitives that a composition of others defines, as the fused operations of src/kernels: the rules that follow from
// it.
#pragma once

#include <capibara/primitive.h>

namespace capibara {

struct PullbackArgs {
  std::span<const Array> operands;
  std::span<const Array> results;     // empty where they were not saved
  std::span<const Array> cotangents;  // one per result, empty: zero
  const Attrs& attrs;
};
// One cotangent per operand, empty where it is zero. No cotangents at all: this case is left to the composition.
using PullbackRule = std::function<Arrays(const PullbackArgs&)>;

// A reverse derivative of its own, faster than that of the composition.
struct Pullback {
  PullbackRule rule;
  std::vector<bool> saved;  // one per result: whether the rule reads it
};

// The head of the record of a fused operation on floating arrays with several results.
PrimitiveRecord fused_record(std::string name, std::string doc);

// Completes a record whose `lower` rule is its meaning, of which it has type, samples and traits. Forward derivatives,
// those of higher order, and transposes are those of the composition; so are batches where the record has no rule, or
// where its rule returns no outputs. Reverse derivatives run the pullback, if there is one.
PrimitiveRecord composed(PrimitiveRecord record, Pullback pullback = {});

// The tangents of a composed operation with a pullback: the derivative of the composition, transposed by the pullback.
PrimitiveRecord composed_tangent_record();

}  // namespace capibara
