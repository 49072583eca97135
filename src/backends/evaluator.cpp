// Running one operation now: the choice of a backend for operands.
#include "trace/evaluator.h"

#include <capibara/default_device.h>

#include "backends/backend.h"
#include "backends/reference/backend.h"

namespace capibara {

Arrays evaluate(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
  bool committed = false;
  for (const Array& input : inputs) committed = committed || input.committed();
  if (!committed) return default_backend().run(primitive, inputs, attrs);
  const std::optional<Device> demanded = demanded_device(inputs);
  if (!demanded) return as_committed(default_backend().run(primitive, inputs, attrs));
  const DefaultDeviceScope scope(demanded);
  return as_committed(default_backend().run(primitive, inputs, attrs));
}

Arrays evaluate_plainly(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
  return reference::backend().run(primitive, inputs, attrs);
}

}  // namespace capibara
