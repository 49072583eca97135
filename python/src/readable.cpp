// Arrays on devices of several processes can be read if this process holds every element.
#include "readable.h"

#include <capibara/placement.h>

#include <cstring>

#include "bindings.h"
#include "core/array/readable.h"
#include "core/sharding/process_grid.h"

namespace capibara::python {

bool may_read(const Array& array) {
  if (array.is_tracer()) return true;
  const std::optional<NamedSharding> placement = jax::placement(array);
  return !placement || is_readable(*placement);
}

void require_readable(const Array& array) {
  if (may_read(array)) return;
  refuse_distant_values();
}

Array copied(const Array& array) {
  const std::size_t size = array.buffer().size();
  Buffer buffer = Buffer::allocate(size);
  if (size > 0) std::memcpy(buffer.mutable_data(), array.raw_data(), size);
  const Array copy = Array::from_buffer(array.type(), buffer, array.committed());
  const std::optional<NamedSharding> placement = array.committed() ? jax::placement(array) : std::nullopt;
  return placement ? jax::device_put(copy, *placement) : copy;
}

std::string readable_repr(const Array& array) {
  if (may_read(array)) return array.repr();
  return text_without_values(array);
}

}  // namespace capibara::python
