// The jitted Python function, and its interface to the stages (traced, lowered, compiled).
#pragma once

#include <capibara/jit.h>

#include "jit_arguments.h"
#include "jit_recent.h"
#include "transforms/jit_stages.h"

#include <memory>
#include <string>

namespace capibara::python {

// State shared by all jit wrappers of one function with the same settings.
struct SharedCalls {
  std::shared_ptr<detail::JitCache> cache;
  std::shared_ptr<RecentCalls> recent = std::make_shared<RecentCalls>();
};

// A jitted Python function.
struct JitFunction : SharedCalls {
  nb::object function;
  JitSettings settings;
  std::string name;
};

// The cached entry for this call; traces on a miss.
std::shared_ptr<const detail::JitEntry> find_entry(const JitFunction& jit, const JitCall& call);

// The results of a call in the structure that the function returned.
nb::object rebuild(const detail::JitEntry& entry, const Arrays& outputs);

// The platform of the plugin that compiles for a topology, from a placement's platform, "topology:" and a number.
std::string topology_plugin_platform(const std::string& platform);

// Pairs of name and value.
CompilerOptions options_of(nb::handle pairs);

// trace, lower and eval_shape of a jitted function, and the classes of what they return.
void bind_jit_stages(nb::module_& m, nb::class_<JitFunction>& function);

}  // namespace capibara::python
