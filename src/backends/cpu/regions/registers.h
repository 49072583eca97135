// Small arrays held element by element in registers: runs of small equations, and whole loops whose carries are small.
#pragma once

#include "backends/cpu/regions/region.h"

namespace capibara::cpu {

inline constexpr int64_t max_register_elements = 64;  // of one value

// Whether an equation can be written with every value in registers, bodies of loops and branches included.
bool fits_registers(const Program& program, const Equation& equation);
// Scalar operations that the equation becomes, estimated.
int64_t register_cost(const Program& program, const Equation& equation);

// One function for these equations, given in order. `stored`: variables that others read. The parameters are what the
// equations read, then the stored variables.
Region write_registers(const Program& program, std::span<const int> equations, const std::vector<Var>& stored);

// A while loop whose large carries are updated by small windows, all else in registers.
bool updates_in_registers(const Equation& loop);
// Its function. The parameters are the operands that are not literals, but those carries that are in the memory of
// their results already (all large ones must be), then the results.
Function write_loop_in_place(const Program& program, const Equation& loop, const std::vector<bool>& in_result);

}  // namespace capibara::cpu
