// Primitives defined by a composition of others, such as the fused operations of src/kernels: the rules derived from
// it.
#pragma once

#include <capibara/primitive.h>

namespace capibara {

struct PullbackArgs {
  std::span<const Array> operands;
  std::span<const Array> results;     // empty if not saved
  std::span<const Array> cotangents;  // one per result, empty: zero
  const Attrs& attrs;
};
// One cotangent per operand, empty if zero. An empty list leaves the case to the composition.
using PullbackRule = std::function<Arrays(const PullbackArgs&)>;

// A custom reverse derivative, faster than that of the composition.
struct Pullback {
  PullbackRule rule;
  std::vector<bool> saved;  // one per result: true if the rule reads it
};

// Starts the record of a fused operation on floating arrays with several results.
PrimitiveRecord fused_record(std::string name, std::string doc);

// Completes a record that has type, samples, traits, and its meaning as the `lower` rule. Forward and higher-order
// derivatives and transposes are those of the composition; so are batches if the record has no batch rule, or if
// it returns no outputs. Reverse derivatives run the pullback, if there is one.
PrimitiveRecord composed(PrimitiveRecord record, Pullback pullback = {});

// The tangents of a composed operation with a pullback: the derivative of the composition, transposed by the pullback.
PrimitiveRecord composed_tangent_record();

}  // namespace capibara
