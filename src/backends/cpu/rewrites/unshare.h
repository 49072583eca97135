// Gives each reader of a broadcast or an iota a copy of its own.
#pragma once

#include <capibara/primitive.h>

namespace capibara::cpu {

Program unshare(const Program& program);

}  // namespace capibara::cpu
