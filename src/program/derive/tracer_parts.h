// What a tracer holds, read from outside of the transform that made it.
#pragma once

#include <capibara/array.h>

#include <optional>
#include <utility>

namespace capibara {

// The primal and the tangent of a value that forward mode traces; empty for other values.
std::optional<std::pair<Array, Array>> jvp_pair(const Array& value);

// The whole batch of a value of which vmap's function sees one member; empty for other values.
std::optional<Array> batch_of(const Array& value);

}  // namespace capibara
