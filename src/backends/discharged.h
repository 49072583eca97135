// Programs with refs on backends that know values only.
#pragma once

#include "backends/backend.h"

#include <functional>

namespace capibara {

// Compiles a program by `compile`, which is given the program on values and which of its inputs are donated. Each call
// reads the refs among the inputs before, and writes them afterwards.
std::shared_ptr<Executable> compile_on_values(
    const Program& program, const std::vector<bool>& donated,
    const std::function<std::shared_ptr<Executable>(const Program&, const std::vector<bool>&)>& compile);

}  // namespace capibara
