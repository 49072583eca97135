// Keeps host calls with side effects in program order: each takes a value that the previous one produced.
#pragma once

#include <capibara/program.h>

namespace capibara::pjrt {

// The lowered program with a token, a meaningless number, threaded from host call to host call and through calls, loops
// and branches. A plugin runs operations that do not depend on each other in any order.
Program order_effects(const Program& program);

}  // namespace capibara::pjrt
