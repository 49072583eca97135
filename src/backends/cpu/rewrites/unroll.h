// Partially unrolled scans: several steps of the body in each iteration.
#pragma once

#include <capibara/primitive.h>

namespace capibara::cpu {

// How to compose the equation; empty unless it is such a scan.
LowerRule unroll_rule(const Program& program, const Equation& equation);

}  // namespace capibara::cpu
