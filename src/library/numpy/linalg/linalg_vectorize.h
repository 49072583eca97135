// Applies functions of single matrices and vectors to batches of them.
#pragma once

#include <capibara/lax.h>

#include <functional>
#include <span>

#include "program/ir/build.h"

namespace capibara {

// Broadcasts the dimensions before each operand's last `core_ranks[i]` and maps the function over them. An operand
// without such a dimension, or with size one there, is not repeated. Raises ValueError if the shapes are incompatible.
Arrays vectorize(const char* name, const FlatFunction& function, const Arrays& operands, const Ints& core_ranks);

}  // namespace capibara
