// Moves exchanges between processes to where their operands are ready.
#pragma once

#include <capibara/primitive.h>

namespace capibara {

// The same equations reordered: each exchange, with the small steps that lead to it, follows the equation that
// computes its operand. The order follows from the program of one device alone, so it is the same in every process.
Program with_early_exchanges(const Program& program);

}  // namespace capibara
