// The passes, each a function from program to program; the pass's own file says what it does and why.
#pragma once

#include <capibara/program.h>

#include <functional>
#include <optional>

#include "lax/reduce/monoid.h"

namespace capibara::passes {

// True for equations that a backend runs directly.
using Keep = std::function<bool(const Program&, const Equation&)>;
// A backend's own composition of an equation, used before its primitive's; empty if there is none.
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
// True if an operation runs code of the host language outside of programs, and its lowering inside them.
bool is_expandable(const Primitive& primitive);
// For backends that run no other pass: returns the same program if there is nothing to expand; else types are strong.
Program expanded(const Program& program);

// ---- reductions by a region that has a name ----
std::optional<Monoid> known_monoid(const Program& region);
bool starts_from_identity(const Program& program, const Equation& reduce, Monoid monoid);
// The named reduction that an equation equals; nullopt if its initial value or its fold differs.
std::optional<Monoid> named_reduction(const Program& program, const Equation& equation);
// A `reduce` by a known monoid as the named reduction, combined with whatever initial value it has.
Arrays fold_from_identity(std::span<const Array> inputs, const Attrs& attrs);

}  // namespace capibara::passes
