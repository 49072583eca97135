// The records of batch normalisation; part of the family of reductions.
#pragma once

#include "lax/families.h"

namespace capibara {

Family batch_norm_family();

}  // namespace capibara
