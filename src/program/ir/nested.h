// The programs inside the attributes of equations.
#pragma once

#include <capibara/program.h>

#include <functional>

namespace capibara {

// Programs in lists count as well; programs inside programs do not.
bool holds_programs(const Attrs& attrs);
bool any_program(const Attrs& attrs, const std::function<bool(const Program&)>& is_met);
void for_each_program(const Attrs& attrs, const std::function<void(const Program&)>& visit);

using ProgramRewrite = std::function<Program(const Program&)>;
// The attributes with every program rewritten; the same object if nothing changed.
Attrs rewrite_programs(const Attrs& attrs, const ProgramRewrite& rewrite);

bool same_object(const Attrs& a, const Attrs& b);  // one and the same, not only equal

}  // namespace capibara
