// The form of programs on which shardings are propagated: calls inlined, constants duplicated for each use.
#pragma once

#include <capibara/primitive.h>

namespace capibara::sharding {

// Replaces calls by their equations, in nested programs too. Values made of constants alone, such as zeros, are
// recomputed for each equation that reads them, so that they do not tie the readers' shardings together.
Program flattened(const Program& program);

}  // namespace capibara::sharding
