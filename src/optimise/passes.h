// The passes, each a function from program to program; its own file says what it does and why.
#pragma once

#include <capibara/program.h>

#include <functional>

namespace capibara::passes {

// Tells which equations a backend runs as they are.
using Keep = std::function<bool(const Program&, const Equation&)>;

Program strengthen(const Program& program);
Program inline_calls(const Program& program);
Program name_reductions(const Program& program);
Program compose(const Program& program, const Keep& keep);
Program lift_constants(const Program& program);
Program simplify(const Program& program);
Program fold(const Program& program);
Program cse(const Program& program);
Program hoist(const Program& program);
Program dce(const Program& program);

}  // namespace capibara::passes
