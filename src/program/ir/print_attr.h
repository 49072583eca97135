// Attributes as jaxpr text shows them.
#pragma once

#include <capibara/attributes.h>

#include <string>

namespace capibara {

// An attribute that is not a program, as Python would print the value.
std::string attr_text(const Attr& attr);

}  // namespace capibara
