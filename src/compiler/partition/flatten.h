// Programs in the form that shardings are propagated through: calls inlined, constants made anew for each use.
#pragma once

#include <capibara/primitive.h>

namespace capibara::sharding {

// Calls become their equations, also in programs that equations hold. What is made of constants alone, such as zeros,
// is made again for each equation that reads it, so that it ties nothing together.
Program flattened(const Program& program);

}  // namespace capibara::sharding
