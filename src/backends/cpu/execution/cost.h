// How long a program will run, roughly and before it ever ran: enough to tell calls that are over at once from long
// ones.
#pragma once

#include <capibara/primitive.h>

namespace capibara::cpu {

// Nanoseconds on one thread. An unknown trip count is assumed expensive.
double estimated_nanoseconds(const Program& program);

// The same for one operation, from its operands alone: 0 where they are few.
double estimated_nanoseconds(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs);

// Whether a program may run at another time and on another thread than its call: nothing that it does can be seen from
// outside, and no code of the user runs in it.
bool may_run_later(const Program& program);

}  // namespace capibara::cpu
