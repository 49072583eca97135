// The reference backend as an implementation of Backend.
#pragma once

#include "backends/backend.h"

namespace capibara::reference {

Backend& backend();

}  // namespace capibara::reference
