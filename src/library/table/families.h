// The families of the table, each defined in the file of its name.
#pragma once

#include "library/table/function.h"

namespace capibara::library {

}  // namespace capibara::library
