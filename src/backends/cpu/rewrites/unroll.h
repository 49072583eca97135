// Scans that are to be unrolled in part: several steps of the body in each iteration.
#pragma once

#include <capibara/primitive.h>

namespace capibara::cpu {

// How to compose the equation; empty for all but such scans.
LowerRule unroll_rule(const Program& program, const Equation& equation);

}  // namespace capibara::cpu
