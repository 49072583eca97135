// The fused operations, as a family of the catalog.
#pragma once

#include "lax/families.h"

namespace capibara {

Family kernel_family();

}  // namespace capibara
