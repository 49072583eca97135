// The functions that users registered for custom calls, by name.
#pragma once

#include <capibara/ffi.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace capibara::ffi {

using jax::ffi::Handlers;

// Another one of the same name replaces it. Raises ValueError without a function to execute.
void register_target(const std::string& name, const Handlers& handlers);
// Asked for targets that are not registered here.
using Finder = std::function<std::optional<Handlers>(const std::string& name)>;
void set_finder(Finder finder);
std::optional<Handlers> find_target(const std::string& name);

// The number of a type that handlers keep as their state, and what deletes it (null: nothing does). The number is
// chosen here where the given one is 0.
int64_t register_type(const std::string& name, int64_t id, void (*deleter)(void*));
void delete_state(int64_t type, void* state);

}  // namespace capibara::ffi
