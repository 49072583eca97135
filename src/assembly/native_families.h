// The backends that need nothing but this library.
#pragma once

#include "backends/cpu/execution/backend.h"
#include "backends/reference/backend.h"

namespace capibara {

inline constexpr BackendFamily cpu_family = {"cpu", [](const std::string& name) { return name == "cpu"; },
                                             [](const std::string&) -> Backend& { return cpu::backend(); }};
inline constexpr BackendFamily reference_family = {"reference",
                                                   [](const std::string& name) { return name == "reference"; },
                                                   [](const std::string&) -> Backend& { return reference::backend(); }};

}  // namespace capibara
