// Looking for 64-bit types.
#include "program/ir/wide_types.h"

#include <algorithm>

#include "program/ir/nested.h"

namespace capibara {

bool holds_wide_types(const Program& program) {
  const auto is_wide = [](const ArrayType& type) { return canonicalize(type.dtype, false) != type.dtype; };
  const auto holds = [](const Equation& equation) { return any_program(equation.attrs, holds_wide_types); };
  return std::any_of(program.body().var_types.begin(), program.body().var_types.end(), is_wide) ||
         std::any_of(program.equations().begin(), program.equations().end(), holds);
}

Config config_for(const Program& program) {
  Config settings = config();
  settings.enable_x64 = settings.enable_x64 || holds_wide_types(program);
  return settings;
}

}  // namespace capibara
