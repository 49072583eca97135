// A dot of a short vector with an axis of an array: a weighted sum, computed by generated code with its neighbours.
#pragma once

#include <capibara/primitive.h>

namespace capibara::cpu {

// How to compose the equation; empty if it is no weighted sum, or if a kernel computes it faster.
LowerRule weighted_sum_rule(const Program& program, const Equation& equation);

}  // namespace capibara::cpu
