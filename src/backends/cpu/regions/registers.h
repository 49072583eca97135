// Small arrays held element by element in registers: runs of small equations, and whole loops whose carries are small.
#pragma once

#include "backends/cpu/regions/region.h"

namespace capibara::cpu {

// Whether an equation can be written with every value in registers, bodies of loops and branches included.
bool fits_registers(const Program& program, const Equation& equation);
// Scalar operations that the equation becomes, estimated.
int64_t register_cost(const Program& program, const Equation& equation);

// One function for these equations, given in order. `stored`: variables that others read. The parameters are what the
// equations read, then the stored variables.
Region write_registers(const Program& program, std::span<const int> equations, const std::vector<Var>& stored);

}  // namespace capibara::cpu
