// Running one operation now, for the rooms below the backends: the choice of a backend for operands.
#include "trace/evaluator.h"

#include <capibara/default_device.h>

#include "backends/backend.h"
#include "backends/reference/backend.h"
#include "backends/result_placement.h"
#include "program/handles.h"

namespace capibara {

Arrays evaluate(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
  bool committed = false;
  for (const Array& input : inputs) committed = committed || input.committed();
  if (!committed && !(primitive == prim::shard_map())) return default_backend().run(primitive, inputs, attrs);
  const std::optional<Device> demanded = demanded_device(inputs);
  if (!demanded) {
    Arrays outputs = as_committed(default_backend().run(primitive, inputs, attrs));
    return any_placed(inputs) || primitive == prim::shard_map()
               ? placed_results(primitive, inputs, attrs, std::move(outputs))
               : outputs;
  }
  const DefaultDeviceScope scope(demanded);
  return as_committed(default_backend().run(primitive, inputs, attrs));
}

Arrays evaluate_plainly(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
  return reference::backend().run(primitive, inputs, attrs);
}

}  // namespace capibara
