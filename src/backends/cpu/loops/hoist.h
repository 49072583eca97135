// Moves loop-invariant computations in front of their loop.
#pragma once

#include "backends/cpu/loops/loops.h"

namespace capibara::cpu {

// Computations leave every loop that they do not depend on; loads do if nothing is written to their buffer and the loop
// is certain to run at least once.
void hoist(Function& function);

}  // namespace capibara::cpu
