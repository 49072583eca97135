// Functions with the user's own rules, where the rules may ask to see which tangents are zero.
#pragma once

#include <capibara/custom_derivatives.h>

#include "program/custom_rules.h"

namespace capibara::detail {

// With symbolic_zeros the rule receives an empty handle for a tangent that is zero, and may return one.
Arrays bind_custom_jvp(const FlatFunction& function, const TreeDef& in, std::span<const Array> leaves,
                       const RuleNames& names, FlatJvpRule rule, bool symbolic_zeros);

// With symbolic_zeros backward receives an empty handle for a cotangent that is zero.
Arrays bind_custom_vjp(const FlatFunction& function, const TreeDef& in, std::span<const Array> leaves,
                       const RuleNames& names, CustomVjpRule::Forward forward, FlatBackward backward,
                       bool symbolic_zeros);

}  // namespace capibara::detail
