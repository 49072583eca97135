// Functions with the user's own rules, where the rules may ask to see which tangents are zero.
#pragma once

#include <capibara/custom_derivatives.h>

#include "program/derive/custom_rules.h"
#include "program/trace/trace.h"

#include <atomic>

namespace capibara::detail {

// A call of a function with rules: one of jvp and vjp is given. With symbolic_zeros the rule of jvp receives an empty
// handle for a tangent that is zero and may return one, and backward receives one for a cotangent that is zero.
struct CustomCall {
  FlatFunction function;
  RuleNames names;
  std::shared_ptr<const CustomJvpRule> jvp;
  std::shared_ptr<const CustomVjpRule> vjp;
  bool symbolic_zeros = false;
};

// A trace that takes such a call as it is; without one the function is staged. Nothing is returned where the trace
// cannot: then, too, it is staged.
class CustomCallTrace {
 public:
  virtual ~CustomCallTrace() = default;
  virtual std::optional<Arrays> call(const CustomCall& call, std::span<const Array> inputs) = 0;
};

// Runs the function where all is known, or the rule of each transform around; the function is traced only where it
// becomes part of a program. The rules alone may run: they must know the structures of arguments and result.
Arrays call_custom(const CustomCall& call, std::span<const Array> inputs);

// Whether cotangents that backward rules return must have the types of the arguments: the setting
// jax_disable_bwd_checks.
std::atomic<bool>& checks_backward_rules();

// Whether a function called under this trace ends in a program that is being staged outside of it.
bool is_staged(const Trace& trace);

// Stages the function into a program in any case but plain evaluation.
Arrays bind_custom(const CustomCall& call, const TreeDef& in, std::span<const Array> leaves);

}  // namespace capibara::detail
