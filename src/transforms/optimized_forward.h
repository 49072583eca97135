// Forward rules that disappear if nothing is differentiated.
#pragma once

#include "program/derive/custom.h"

namespace capibara::detail {

// A forward rule that dead code elimination replaces by the function if the residuals are unused.
CustomVjpRule::Forward optimized_forward(const FlatFunction& function, const CustomVjpRule::Forward& forward,
                                         const RuleNames& names);

}  // namespace capibara::detail
