// Programs with refs on backends that only support values.
#pragma once

#include "backends/backend.h"

#include <functional>

namespace capibara {

// Compiles a program with `compile`, which receives the discharged program (on values) and its donated inputs. Each
// call reads the refs among the inputs beforehand and writes them afterwards.
std::shared_ptr<Executable> compile_on_values(
    const Program& program, const std::vector<bool>& donated,
    const std::function<std::shared_ptr<Executable>(const Program&, const std::vector<bool>&)>& compile);

}  // namespace capibara
