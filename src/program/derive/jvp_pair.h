// The primal and tangent of values that are being differentiated, read from outside of the transform.
#pragma once

#include <capibara/array.h>

#include <optional>
#include <utility>

namespace capibara {

// The primal and the tangent of a value that forward mode traces; empty for other values.
std::optional<std::pair<Array, Array>> jvp_pair(const Array& value);

}  // namespace capibara
