// Arrays on devices of several processes: values are read where this process holds every element.
#pragma once

#include <capibara/array.h>
#include <capibara/placement.h>

namespace capibara {

// Whether the devices of this process hold every element of an array placed so, as src/assembly names it.
using HoldsElements = bool(const NamedSharding& placement);
extern HoldsElements* const holds_every_element;

// Whether the values of a concrete array of the host may be read.
bool is_readable(const Array& array);
// Says that they may not, in jax's words.
[[noreturn]] void refuse_distant_values();
// The text of an array whose values may not be read.
std::string text_without_values(const Array& array);

}  // namespace capibara
