// Which placements this process holds whole, for the reads of arrays.
#include "core/array/readable.h"
#include "core/sharding/process_grid.h"

namespace capibara {

bool holds_every_element(const NamedSharding& placement) { return is_readable(placement); }

}  // namespace capibara
