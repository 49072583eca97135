// How long a program will run, roughly and before it ever ran: enough to tell calls that are over at once from long ones.
#pragma once

#include <capibara/primitive.h>

namespace capibara::cpu {

// Nanoseconds on one thread. Loops whose turns nobody knows count as long.
double estimated_nanoseconds(const Program& program);

// Whether a program may run at another time and on another thread than its call: nothing that it does can be seen from
// outside, and no code of the user runs in it.
bool may_run_later(const Program& program);

}  // namespace capibara::cpu
