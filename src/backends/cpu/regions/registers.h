// Small arrays held element by element in registers: runs of small equations, and whole loops whose carries are small.
#pragma once

#include "backends/cpu/regions/region.h"

namespace capibara::cpu {

inline constexpr int64_t max_register_elements = 64;  // of one value

// True if an equation can be emitted with every value in registers, including bodies of loops and branches.
bool fits_registers(const Program& program, const Equation& equation);
// Scalar operations that the equation becomes, estimated.
int64_t register_cost(const Program& program, const Equation& equation);

// One function for these equations, in the given order. `stored`: variables that others read. The parameters are what
// the equations read, followed by the stored variables.
Region write_registers(const Program& program, std::span<const int> equations, const std::vector<Var>& stored);

// True for a while loop whose large carries are updated by small windows, while all else is in registers.
bool updates_in_registers(const Equation& loop);
// Its function. The parameters are the operands that are not literals, except carries that are already in the memory of
// their results (all large ones must be), followed by the results.
Function write_loop_in_place(const Program& program, const Equation& loop, const std::vector<bool>& in_result);

}  // namespace capibara::cpu
