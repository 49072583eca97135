// Arrays placed on several devices of the host. Their values are in one row-major allocation, each stored once: every
// operation reads them unchanged, and devices share what they have in common.
#pragma once

#include <capibara/placement.h>

namespace capibara {

// The part on each device of this process, in the order of the placement. Contiguous parts are views; equal parts are
// the same array.
std::vector<Array> host_shards(const Array& x, const NamedSharding& placement);
// The parts of all devices of a placement that spans processes, from those of this one. Every process of it calls this.
std::vector<Array> shards_of_all_processes(const NamedSharding& placement, const std::vector<Array>& own);
// Joins the parts that the devices hold to one array.
Array joined_host_shards(const Shape& shape, const NamedSharding& placement, const std::vector<Array>& shards);

}  // namespace capibara
