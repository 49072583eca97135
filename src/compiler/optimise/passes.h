// The passes, each a function from program to program; its own file says what it does and why.
#pragma once

#include <capibara/program.h>

#include <functional>
#include <optional>

#include "lax/reduce/monoid.h"

namespace capibara::passes {

// Tells which equations a backend runs as they are.
using Keep = std::function<bool(const Program&, const Equation&)>;
// A backend's own composition of an equation, before its primitive's; an empty one for none.
using OwnRule = std::function<LowerRule(const Program&, const Equation&)>;

Program strengthen(const Program& program);
Program inline_calls(const Program& program);
Program name_reductions(const Program& program);
Program expand(const Program& program);
Program compose(const Program& program, const Keep& keep, const OwnRule& own_rule = {});
Program lift_constants(const Program& program);
Program simplify(const Program& program);
Program fold(const Program& program);
Program cse(const Program& program);
Program hoist(const Program& program);
Program dce(const Program& program);

// ---- operations of users ----
// Whether an operation is code of the host language outside of programs, and its lowering inside of them.
bool is_expandable(const Primitive& primitive);
// For backends that run no other pass: the same program where nothing is to be expanded; else types are strong.
Program expanded(const Program& program);

// ---- reductions by a region that has a name ----
std::optional<Monoid> known_monoid(const Program& region);
bool starts_from_identity(const Program& program, const Equation& reduce, Monoid monoid);
// The named reduction that an equation is; nothing where it starts from another element or folds in another way.
std::optional<Monoid> named_reduction(const Program& program, const Equation& equation);
// A `reduce` by a known monoid as the named reduction, to whose result the initial value is added, whatever it is.
Arrays fold_from_identity(std::span<const Array> inputs, const Attrs& attrs);

}  // namespace capibara::passes
