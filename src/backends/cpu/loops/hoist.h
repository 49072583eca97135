// Moves what does not change from iteration to iteration in front of its loop.
#pragma once

#include "backends/cpu/loops/loops.h"

namespace capibara::cpu {

// Computations leave every loop that they do not depend on; loads do where nothing is written to their buffer and the
// loop surely runs at least once.
void hoist(Function& function);

}  // namespace capibara::cpu
