// Arrays that count as placed on several devices of the host. Their values are in one allocation, row-major, each once:
// every operation reads them as they are, and what devices share is stored once.
#pragma once

#include <capibara/placement.h>

namespace capibara {

// The part on each device of this process, in the order of the placement. Parts that are contiguous are views; equal
// parts are one array.
std::vector<Array> host_shards(const Array& x, const NamedSharding& placement);
// The parts of all devices of a placement that spans processes, from those of this one. Every process of it calls this.
std::vector<Array> shards_of_all_processes(const NamedSharding& placement, const std::vector<Array>& own);
// One array of the parts that the devices hold.
Array joined_host_shards(const Shape& shape, const NamedSharding& placement, const std::vector<Array>& shards);

}  // namespace capibara
