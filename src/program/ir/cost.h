// What one equation costs, beside the cost of whole programs in capibara/analysis.h.
#pragma once

#include <capibara/analysis.h>
#include <capibara/program.h>

namespace capibara {

ProgramCost equation_cost(const Program& program, const Equation& equation);

}  // namespace capibara
