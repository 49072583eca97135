// The model of one matmul, with its constants as an argument, for refitting.
#pragma once

#include <capibara/tpu/costs.h>

#include "tpu/constants.h"

namespace capibara::tpu {

MatmulCost matmul_cost(const Chip& chip, const Matmul& matmul, const MatmulConstants& constants);

}  // namespace capibara::tpu
