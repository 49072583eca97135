// Exchanges between processes as early as what they send is there.
#pragma once

#include <capibara/primitive.h>

namespace capibara {

// The same equations in another order: each exchange, with the small steps that lead to it, behind the equation that
// computes what it sends. The order follows from the program of one device alone, so it is the same in every process.
Program with_early_exchanges(const Program& program);

}  // namespace capibara
