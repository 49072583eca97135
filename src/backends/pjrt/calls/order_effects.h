// Keeps host calls with side effects in the order of the program: each takes a value that the one before it has made.
#pragma once

#include <capibara/program.h>

namespace capibara::pjrt {

// The lowered program with a token, a number that means nothing, carried from call to call and through calls, loops and
// branches. A plugin runs what does not depend on each other in any order.
Program order_effects(const Program& program);

}  // namespace capibara::pjrt
