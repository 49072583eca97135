// Orders the groups of a program so that large values die early.
#pragma once

#include "backends/cpu/groups/fuse.h"

namespace capibara::cpu {

// Fusion puts a group as late as its readers allow, so that all gradients of a training step would live until the
// weights are updated at the end. Here a group that frees more memory than it takes runs as soon as its operands exist;
// all others keep their order.
void schedule(const Program& program, Fusion& fusion);

}  // namespace capibara::cpu
