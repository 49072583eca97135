// Functions with the user's own rules, which may request to see which tangents are zero.
#pragma once

#include <capibara/custom_derivatives.h>

#include "program/derive/custom_rules.h"
#include "program/trace/trace.h"

#include <atomic>

namespace capibara::detail {

// A call of a function with rules: exactly one of jvp and vjp. With symbolic_zeros the rule of jvp receives an empty
// handle for a tangent that is zero and may return one, and backward receives one for a cotangent that is zero.
struct CustomCall {
  FlatFunction function;
  RuleNames names;
  std::shared_ptr<const CustomJvpRule> jvp;
  std::shared_ptr<const CustomVjpRule> vjp;
  bool symbolic_zeros = false;
};

// A trace that handles this call directly; under other traces the function is staged. Returns nothing if the trace
// cannot: then, too, the function is staged.
class CustomCallTrace {
 public:
  virtual ~CustomCallTrace() = default;
  virtual std::optional<Arrays> call(const CustomCall& call, std::span<const Array> inputs) = 0;
};

// Runs the function if all inputs are known, or the rule of each surrounding transform; the function is traced only
// when it becomes part of a program. If only the rules run, they must know the structures of arguments and result.
Arrays call_custom(const CustomCall& call, std::span<const Array> inputs);

// True if cotangents returned by backward rules must have the types of the arguments: the negation of
// jax_disable_bwd_checks.
std::atomic<bool>& checks_backward_rules();

// True if a function called under this trace becomes part of a program that is being staged outside of it.
bool is_staged(const Trace& trace);

// Stages the function into a program under any trace but plain evaluation.
Arrays bind_custom(const CustomCall& call, const TreeDef& in, std::span<const Array> leaves);

}  // namespace capibara::detail
