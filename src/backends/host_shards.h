// Arrays that count as placed on several devices of the host. Their values are in one allocation, row-major, each once:
// every operation reads them as they are, and what devices share is stored once.
#pragma once

#include <capibara/placement.h>

namespace capibara {

// The part on each device of the placement, in its order. Parts that are contiguous are views; equal parts are one
// array.
std::vector<Array> host_shards(const Array& x, const NamedSharding& placement);
// One array of the parts that the devices hold.
Array joined_host_shards(const Shape& shape, const NamedSharding& placement, const std::vector<Array>& shards);

}  // namespace capibara
