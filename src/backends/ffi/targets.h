// The functions registered by users for custom calls, by name.
#pragma once

#include <capibara/ffi.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace capibara::ffi {

using jax::ffi::Handlers;

// Replaces a previous target of the same name. Raises ValueError if there is no function to execute.
void register_target(const std::string& name, const Handlers& handlers);
// Called for targets that are not registered here.
using Finder = std::function<std::optional<Handlers>(const std::string& name)>;
void set_finder(Finder finder);
std::optional<Handlers> find_target(const std::string& name);

// Registers a type that handlers keep as state, with its deleter (null: none), and returns its id, which is chosen here
// if the given one is 0.
int64_t register_type(const std::string& name, int64_t id, void (*deleter)(void*));
void delete_state(int64_t type, void* state);

}  // namespace capibara::ffi
