// Running one operation now, for the rooms below the backends: the choice of a backend for operands.
#include "trace/evaluator.h"

#include <capibara/default_device.h>

#include "backends/backend.h"
#include "backends/reference/backend.h"
#include "backends/result_placement.h"
#include "program/explicit_types.h"
#include "program/handles.h"
#include "program/nested.h"
#include "program/plain_types.h"

#include <algorithm>

namespace capibara {

namespace {

bool is_typed(std::span<const Array> inputs, const Attrs& attrs) {
  return asked_sharding(attrs) || std::any_of(inputs.begin(), inputs.end(), [](const Array& input) {
           return input.type().sharding.is_explicit();
         });
}

// Under Explicit axes: the types of results say where they are placed.
Arrays evaluate_typed(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
  Types types;
  Arrays plain;
  for (const Array& input : inputs) {
    types.push_back(input.type());
    plain.push_back(input.type().sharding.is_explicit() ? with_plain_type(input) : input);
  }
  const Types results = explicit_types(primitive, types, attrs).types;
  Arrays outputs = primitive == prim::reshard()
                       ? plain
                       : evaluate(primitive, plain, with_plain_attrs(rewrite_programs(attrs, with_plain_types)));
  const ShardingAttr* asked = asked_sharding(attrs);
  if (primitive == prim::reshard() && !results[0].sharding.is_explicit()) return {left_to_compiler(outputs[0])};
  return placed_by_types(results, inputs, std::move(outputs), asked ? asked->devices : nullptr);
}

}  // namespace

Arrays evaluate(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
  if (explicit_types_exist() && is_typed(inputs, attrs)) return evaluate_typed(primitive, inputs, attrs);
  bool committed = false;
  for (const Array& input : inputs) committed = committed || input.committed();
  if (!committed && !(primitive == prim::shard_map()))
    return placed_in_context(default_backend().run(primitive, inputs, attrs));
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
