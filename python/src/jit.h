// What jit makes of a Python function, and what its stages need of it.
#pragma once

#include <capibara/jit.h>

#include "jit_arguments.h"
#include "jit_recent.h"
#include "transforms/jit_stages.h"

#include <memory>
#include <string>

namespace capibara::python {

// What all wrappers that jit makes of one function with the same settings share.
struct SharedCalls {
  std::shared_ptr<detail::JitCache> cache;
  std::shared_ptr<RecentCalls> recent = std::make_shared<RecentCalls>();
};

// What jit makes of a Python function.
struct JitFunction : SharedCalls {
  nb::object function;
  JitSettings settings;
  std::string name;
};

// What was traced for such a call, now or before.
std::shared_ptr<const detail::JitEntry> find_entry(const JitFunction& jit, const JitCall& call);

// The results of a call in the structure that the function returned.
nb::object rebuild(const detail::JitEntry& entry, const Arrays& outputs);

// Pairs of name and value.
CompilerOptions options_of(nb::handle pairs);

// trace, lower and eval_shape of a jitted function, and the classes of what they return.
void bind_jit_stages(nb::module_& m, nb::class_<JitFunction>& function);

}  // namespace capibara::python
