// Exchanges of lanes between the processes along an axis of a mesh.
#pragma once

#include "lax/families.h"
#include "sharding/process_grid.h"

namespace capibara {

Family process_records();  // process_all_gather, process_reduce

// [lanes of this process, ...] -> [lanes of all processes along the axis, ...]
Array process_all_gather(const Array& lanes, const std::string& operation, const ProcessAxis& axis);
// [lanes of this process, ...] -> [...]; `reduction`: psum, pmax, pmin. Sums add in a fixed tree over all lanes.
Array process_reduce(const Array& lanes, const std::string& reduction, const ProcessAxis& axis);

}  // namespace capibara
