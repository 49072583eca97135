// The cost of one equation; that of whole programs is in capibara/analysis.h.
#pragma once

#include <capibara/analysis.h>
#include <capibara/program.h>

#include <array>
#include <span>

namespace capibara {

ProgramCost equation_cost(const Program& program, const Equation& equation);

// The operations of one call outside of any program, by type.
std::array<uint64_t, rate_type_count> operation_flops(const Primitive& primitive, std::span<const Array> inputs,
                                                      const Attrs& attrs);
// The operations of a program, by type.
std::array<uint64_t, rate_type_count> program_flops(const Program& program);

}  // namespace capibara
