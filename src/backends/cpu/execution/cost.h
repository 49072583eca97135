// A rough estimate of how long a program will take, made before its first run: enough to tell calls that finish at once
// from long ones.
#pragma once

#include <capibara/primitive.h>

namespace capibara::cpu {

// Nanoseconds on one thread. An unknown trip count is assumed expensive.
double estimated_nanoseconds(const Program& program);

// The same for one operation, from its operands alone: 0 if they are small.
double estimated_nanoseconds(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs);

// True if a program may run later than its call and on another thread: it has no visible side effects, and runs no code
// of the user.
bool may_run_later(const Program& program);

}  // namespace capibara::cpu
