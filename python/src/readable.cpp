// Arrays on devices of several processes are read where this process holds every element.
#include "readable.h"

#include <capibara/placement.h>

#include <cstring>

#include "bindings.h"
#include "sharding/process_grid.h"

namespace capibara::python {

bool may_read(const Array& array) {
  if (array.is_tracer()) return true;
  const std::optional<NamedSharding> placement = jax::placement(array);
  return !placement || is_readable(*placement);
}

void require_readable(const Array& array) {
  if (may_read(array)) return;
  throw RuntimeError(
      "Fetching value for `jax.Array` that spans non-addressable (non process local) devices is not possible. You can "
      "use `jax.experimental.multihost_utils.process_allgather` to print the global array or use `.addressable_shards` "
      "method of jax.Array to inspect the addressable (process local) shards.");
}

Array copied(const Array& array) {
  const std::size_t size = array.buffer().size();
  Buffer buffer = Buffer::allocate(size);
  if (size > 0) std::memcpy(buffer.mutable_data(), array.raw_data(), size);
  return Array::from_buffer(array.type(), buffer, array.committed());
}

std::string readable_repr(const Array& array) {
  if (may_read(array)) return array.repr();
  return concat("Array(shape=", nb::cast<std::string>(nb::repr(int_tuple(array.shape()))),
                ", dtype=", to_string(array.dtype()), array.weak_type() ? ", weak_type=True)" : ")");
}

}  // namespace capibara::python
