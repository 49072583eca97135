// The policy for operations outside of jit: which backend runs them, where their results are placed, what a profile
// records.
#include "backends/evaluator.h"

#include <capibara/default_device.h>

#include "backends/backend.h"
#include "backends/reference/backend.h"
#include "backends/result_placement.h"
#include "core/array/body.h"
#include "core/profile/recorder.h"
#include "core/runtime/counters.h"
#include "core/sharding/explicit.h"
#include "program/ir/cost.h"
#include "program/ir/explicit_types.h"
#include "program/ir/handles.h"
#include "program/ir/nested.h"
#include "program/ir/plain_types.h"
#include "program/ir/source.h"
#include "program/ir/views.h"

#include <algorithm>
#include <optional>

namespace capibara {

namespace {

bool is_typed(std::span<const Array> inputs, const Attrs& attrs) {
  return requested_sharding(attrs) || std::any_of(inputs.begin(), inputs.end(), [](const Array& input) {
           return input.type().sharding.is_explicit();
         });
}

// Under Explicit axes the types of results determine their placement.
Arrays evaluate_typed(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
  Types types;
  Arrays plain;
  // The operations that make up a solver run one by one: results of placed operands would get types again.
  const bool in_steps = primitive->traits.control == Control::solve;
  for (const Array& input : inputs) {
    types.push_back(input.type());
    const bool is_explicit = input.type().sharding.is_explicit();
    plain.push_back(!is_explicit                        ? input
                    : in_steps && host_placement(input) ? unplaced(input)
                                                        : with_plain_type(input));
  }
  const Types results = explicit_types(primitive, types, attrs).types;
  // Types inside a shard_map record what varies between devices: shard_map drops them itself.
  const bool keeps_types = maps_devices(primitive);
  Arrays outputs = primitive == prim::reshard() ? plain
                   : keeps_types
                       ? run_now(primitive, plain, attrs)
                       : run_now(primitive, plain, with_plain_attrs(rewrite_programs(attrs, with_plain_types)));
  const ShardingAttr* requested = requested_sharding(attrs);
  if (primitive == prim::reshard() && !results[0].sharding.is_explicit()) return {left_to_compiler(outputs[0])};
  return placed_by_types(results, inputs, std::move(outputs), requested ? requested->devices : nullptr);
}

Arrays evaluate_now(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
  if (explicit_types_exist() && is_typed(inputs, attrs)) return evaluate_typed(primitive, inputs, attrs);
  bool committed = maps_devices(primitive);  // to the devices of its mesh
  for (const Array& input : inputs) committed = committed || input.committed();
  if (!committed)
    return placed_in_context(placed_by_default(default_backend().run(primitive, inputs, attrs)), Places::steps);
  const std::optional<Device> demanded = demanded_device(inputs);
  if (!demanded) {
    Arrays outputs = as_committed(default_backend().run(primitive, inputs, attrs));
    return any_placed(inputs) || maps_devices(primitive) ? placed_results(primitive, inputs, attrs, std::move(outputs))
                                                         : outputs;
  }
  const DefaultDeviceScope scope(demanded);
  return as_committed(default_backend().run(primitive, inputs, attrs));
}

// The same, recorded in a profile: nested evaluations are parts of the outermost one.
Arrays evaluate_profiled(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
  if (profile::inside()) return evaluate_now(primitive, inputs, attrs);
  const profile::Inside parts;
  profile::Slot site;
  Types types;
  const int64_t begin = profile::now(), programs = profile::programs_called();
  for (const Array& input : inputs) types.push_back(input.type());
  Arrays outputs = evaluate_now(primitive, inputs, attrs);
  if (profile::programs_called() != programs) return outputs;  // it ran as a program, whose slots hold the time
  site.name = primitive.name();
  site.kind = "eager";
  site.equations = {primitive.name()};
  auto bytes = [](const ArrayType& type) {
    return static_cast<double>(type.size()) * static_cast<double>(storage_size(type.dtype));
  };
  for (const Array& output : outputs) {
    site.text += concat(site.text.empty() ? "" : ", ", short_string(output.type()));
    site.bytes_written += bytes(output.type());
  }
  site.text += concat(" = ", primitive.name(), "(");
  for (const ArrayType& type : types) {
    site.text += concat(&type == types.data() ? "" : ", ", short_string(type));
    site.bytes_read += bytes(type);
  }
  site.text += ")";
  if (primitive->flops) site.flops = primitive->flops(types, attrs);
  if (!types.empty()) site.rate_type = rate_type(types[0].dtype);
  const SourceInfo info = source_info(current_source());
  site.file = info.file;
  site.line = info.line;
  site.scope = info.name_scope;
  profile::record_eager(begin, std::move(site));
  return outputs;
}

}  // namespace

Arrays run_now(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
  std::optional<CountedWork> parts;
  if (!CountedWork::is_part()) {
    const FlopsByType flops = operation_flops(primitive, inputs, attrs);
    CountedWork::add(flops);
    // An operation of unknown cost may consist of others whose cost is known.
    if (flops != FlopsByType{}) parts.emplace();
  }
  return profile::active() ? evaluate_profiled(primitive, inputs, attrs) : evaluate_now(primitive, inputs, attrs);
}

Arrays run_plainly(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
  return reference::backend().run(primitive, inputs, attrs);
}

}  // namespace capibara
