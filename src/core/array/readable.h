// Arrays on devices of several processes: values are read where this process holds every element.
#pragma once

#include <capibara/array.h>
#include <capibara/placement.h>

namespace capibara {

// True if this process's devices hold every element of an array with this placement; defined in src/assembly.
using HoldsElements = bool(const NamedSharding& placement);
extern HoldsElements* const holds_every_element;

// True if the values of a concrete array on the host can be read.
bool is_readable(const Array& array);
// Raises jax's error for values that cannot be read.
[[noreturn]] void refuse_distant_values();
// The text of an array whose values cannot be read.
std::string text_without_values(const Array& array);

}  // namespace capibara
