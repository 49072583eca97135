// The check of the mapping from components of index vectors to operand dimensions, shared by gather and scatter.
#pragma once

#include "lax/shape/shape.h"

namespace capibara {

// One entry per component of the index vectors, each an operand dimension, none twice; TypeError otherwise.
void require_index_map(const char* op, const char* name, const Ints& map, const ArrayType& operand,
                       const ArrayType& indices);

}  // namespace capibara
