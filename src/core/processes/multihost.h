// Arrays of the host across processes, with the caller's line as text.
#pragma once

#include <capibara/array.h>

#include <optional>
#include <string>

#include "core/processes/exchange.h"

namespace capibara::processes {

Array all_gather(const Array& x, bool tiled, const std::string& line);
Array broadcast(const Array& x, std::optional<bool> is_source, const std::string& line);
// Reduces over the first axis, the lanes of this process, and all processes.
Array reduce(const Array& x, Reduction kind, const std::string& line);

}  // namespace capibara::processes
