// The error and the text for arrays whose values are in other processes.
#include "core/array/readable.h"

#include "core/array/body.h"
#include "core/array/format.h"

namespace capibara {

bool is_readable(const Array& array) {
  const auto& placement = host_placement(array);
  return !placement || holds_every_element(*placement);
}

void refuse_distant_values() {
  throw RuntimeError(
      "Fetching value for `jax.Array` that spans non-addressable (non process local) devices is not possible. You can "
      "use `jax.experimental.multihost_utils.process_allgather` to print the global array or use `.addressable_shards` "
      "method of jax.Array to inspect the addressable (process local) shards.");
}

std::string text_without_values(const Array& array) {
  return concat("Array(shape=", shape_tuple(array.shape()), ", dtype=", to_string(array.dtype()),
                array.weak_type() ? ", weak_type=True)" : ")");
}

}  // namespace capibara
