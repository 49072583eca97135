// Programs whose exchanges between processes run while they compute.
#pragma once

#include <capibara/primitive.h>

namespace capibara::cpu {

// Each exchange becomes a start where it stands and a wait before the first equation that reads its result.
Program overlapped(const Program& program);

}  // namespace capibara::cpu
