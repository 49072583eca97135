// The reference backend as a Backend.
#pragma once

#include "backends/backend.h"

namespace capibara::reference {

Backend& backend();

}  // namespace capibara::reference
