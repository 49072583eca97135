// Overlaps exchanges between processes with computation.
#pragma once

#include <capibara/primitive.h>

namespace capibara::cpu {

// Each exchange becomes a start in its place and a wait before the first equation that reads its result.
Program overlapped(const Program& program);

}  // namespace capibara::cpu
