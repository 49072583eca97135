// Programs of one device, whose types do not say over which mesh axes values vary.
#pragma once

#include <capibara/program.h>

namespace capibara {

// The same program with such types: of its variables, constants and literals, and of the programs inside.
Program with_plain_types(const Program& program);

}  // namespace capibara
