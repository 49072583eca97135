// A dot of a short vector with an axis of an array: a weighted sum, computed by generated code beside its neighbours.
#pragma once

#include <capibara/primitive.h>

namespace capibara::cpu {

// How to compose the equation; empty where it is another one, or one that a kernel computes faster.
LowerRule weighted_sum_rule(const Program& program, const Equation& equation);

}  // namespace capibara::cpu
