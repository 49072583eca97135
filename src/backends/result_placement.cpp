// Placement of results by propagating shardings through the program. Values are correct whatever propagation yields:
// an array's placement does not move its elements.
#include "backends/result_placement.h"

#include <capibara/default_device.h>
#include <capibara/partition.h>

#include <algorithm>
#include <mutex>
#include <optional>

#include "backends/backend.h"
#include "core/array/body.h"
#include "core/sharding/explicit.h"
#include "core/sharding/placed_memory.h"
#include "core/sharding/process_grid.h"
#include "program/ir/build.h"
#include "program/ir/handles.h"
#include "program/ir/memo.h"
#include "program/ir/nested.h"

namespace capibara {

namespace {

using Placement = std::shared_ptr<const NamedSharding>;
using Placements = std::vector<Placement>;  // null: placed nowhere in particular
using Results = std::optional<Placements>;

// Equal placements get the same number; a process has few of them.
int64_t number_of(const Placement& placement) {
  if (!placement) return 0;
  static std::mutex mutex;
  static Placements known;
  std::lock_guard lock(mutex);
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (known[i] == placement || *known[i] == *placement) return static_cast<int64_t>(i) + 1;
  }
  known.push_back(placement);
  return static_cast<int64_t>(known.size());
}

Results propagated(const Program& program, const Placements& inputs) {
  sharding::MaybeShardings given;
  for (const Placement& input : inputs) given.push_back(input ? std::optional(*input) : std::nullopt);
  const std::optional<std::vector<NamedSharding>> found = sharding::output_shardings(program, given);
  if (!found) return std::nullopt;
  Placements results;
  for (const NamedSharding& result : *found) results.push_back(std::make_shared<const NamedSharding>(result));
  return results;
}

Results result_shardings(const Program& program, const Placements& inputs) {
  static Memo<Results> memo;
  std::vector<int64_t> numbers;
  for (const Placement& input : inputs) numbers.push_back(number_of(input));
  return memo.get({program, {}, {}, 0, {}, 0, std::move(numbers)}, [&] { return propagated(program, inputs); });
}

bool is_placed_host_array(const Array& array) { return host_placement(array) != nullptr; }

void check_same_devices(const Array& first, const NamedSharding& devices, const Array& input,
                        const NamedSharding& own) {
  if (own.devices == devices.devices) return;
  auto sorted = [](std::vector<int> ids) {
    std::sort(ids.begin(), ids.end());
    return ids;
  };
  if (sorted(own.devices) == sorted(devices.devices)) return;
  throw ValueError(concat("Received incompatible devices for jitted computation. Got argument with shape ",
                          to_string(first.type()), " and sharding ", to_string(devices), " and argument with shape ",
                          to_string(input.type()), " and sharding ", to_string(own),
                          "; move one of them with device_put"));
}

const Placement& first_device() {
  static const auto device = std::make_shared<const NamedSharding>(NamedSharding{"cpu", {0}, {}, {}, ""});
  return device;
}

// The placement of each committed operand; all must be on the same devices.
Placements placements_of(std::span<const Array> inputs) {
  Placements placements;
  std::size_t first = inputs.size();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    placements.emplace_back();
    if (!inputs[i].committed()) continue;
    const Placement& placed = host_placement(inputs[i]);
    placements[i] = placed ? placed : first_device();
    if (first == inputs.size()) first = i;
    if (placements[i] != placements[first])
      check_same_devices(inputs[first], *placements[first], inputs[i], *placements[i]);
  }
  return placements;
}

// Results that propagation leaves open are on the device of the operands.
Results in_device_memory(const Program& program, const Placements& inputs) {
  if (Results found = result_shardings(program, inputs)) return found;
  for (const Placement& input : inputs) {
    if (input) return Placements(program.outputs().size(), input);
  }
  return std::nullopt;
}

bool is_constrained(const Program& program, const Atom& output) {
  return std::ranges::any_of(program.equations(), [&](const Equation& equation) {
    return equation.primitive == prim::sharding_constraint() && !output.is_literal() &&
           equation.outputs[0].id == output.code;
  });
}

// Results of operands in pinned host memory are in it too, as in jax; results never stay in other host memory.
Results shardings_or_device(const Program& program, Placements inputs) {
  bool is_pinned = false;
  for (Placement& input : inputs) {
    if (!input || input->memory_kind.empty()) continue;
    is_pinned = is_pinned || input->memory_kind == "pinned_host";
    auto plain = std::make_shared<NamedSharding>(*input);
    plain->memory_kind.clear();
    input = std::move(plain);
  }
  Results found = in_device_memory(program, inputs);
  for (std::size_t i = 0; is_pinned && found && i < found->size(); ++i) {
    if (!(*found)[i]->memory_kind.empty() || is_constrained(program, program.outputs()[i])) continue;
    auto pinned = std::make_shared<NamedSharding>(*(*found)[i]);
    pinned->memory_kind = "pinned_host";
    (*found)[i] = std::move(pinned);
  }
  return found;
}

Arrays with_placements(const Results& shardings, Arrays outputs) {
  if (!shardings) return outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].is_tracer() || outputs[i].type().ref || outputs[i].device() != Device{}) continue;
    const Placement& own = (*shardings)[i];
    const bool is_first = own->mesh.axis_names.empty() && own->devices[0] == 0 && own->memory_kind.empty();
    outputs[i] = placed_on_host(outputs[i], is_first ? nullptr : own);
  }
  return outputs;
}

}  // namespace

bool any_placed(std::span<const Array> inputs) {
  return std::any_of(inputs.begin(), inputs.end(), is_placed_host_array);
}

bool says_placement(const Program& program) {
  for (const Equation& equation : program.equations()) {
    if (equation.primitive->traits.own_partition) return true;
    if (equation.primitive == prim::sharding_constraint() &&
        equation.attrs.opaque<PlacementAttr>("sharding")->placement->devices.size() > 1)
      return true;
    if (any_program(equation.attrs, says_placement)) return true;
  }
  return false;
}

Arrays placed_by_default(Arrays outputs) {
  const std::optional<Device>& device = chosen_device();
  if (!device || device->platform != "cpu" || device->id == 0) return outputs;
  const auto placement = std::make_shared<const NamedSharding>(NamedSharding{"cpu", {device->id}, {}, {}, ""});
  for (Array& output : outputs) {
    if (output.is_tracer() || output.type().ref || output.committed() || output.device() != Device{}) continue;
    output = Array(std::make_shared<const ConcreteBody>(output.type(), output.buffer(), false, placement));
  }
  return outputs;
}

namespace {

void place_on(const NamedSharding& around, std::span<Array> outputs, Places places) {
  const bool is_explicit = around.mesh.any_is(AxisType::Explicit);
  if (is_explicit && places == Places::steps) return;
  if (around.platform != "cpu" || !is_addressable(around)) return;
  for (Array& output : outputs) {
    if (output.is_tracer() || output.type().ref || output.committed() || output.device() != Device{}) continue;
    auto whole = std::make_shared<NamedSharding>(around);
    whole->spec = {};
    if (is_explicit) whole->spec.dims.resize(output.shape().size());
    output = placed_on_host(as_committed({output})[0], std::move(whole));
  }
}

}  // namespace

Arrays placed_in_context(Arrays outputs, Places places) {
  if (const auto& around = context_mesh()) place_on(*around, outputs, places);
  return outputs;
}

Array placed_in_context(Array output) {
  if (const auto& around = context_mesh()) place_on(*around, {&output, 1}, Places::results);
  return output;
}

namespace {

// True if each device has the same part of an array; if the devices differ, true if all of them have the whole.
bool splits_alike(const NamedSharding& a, const NamedSharding& b, const Shape& shape) {
  if (a.devices.size() != b.devices.size()) return a.replicated() && b.replicated();
  if (a.shard_shape(shape) != b.shard_shape(shape)) return false;
  for (std::size_t position = 0; position < a.devices.size(); ++position) {
    if (a.shard_offset(shape, position) != b.shard_offset(shape, position)) return false;
  }
  return true;
}

}  // namespace

void check_arguments(const Program& program, std::span<const Array> inputs) {
  for (const Equation& equation : program.equations()) {
    if (equation.primitive != prim::sharding_constraint()) return;
    const auto wanted = equation.attrs.opaque<PlacementAttr>("sharding");
    if (wanted->border != PlacementAttr::Border::argument || equation.inputs[0].is_literal()) return;
    const auto place = std::find_if(program.invars().begin(), program.invars().end(),
                                    [&](const Var& invar) { return invar.id == equation.inputs[0].code; });
    if (place == program.invars().end()) return;
    const Array& input = inputs[static_cast<std::size_t>(place - program.invars().begin())];
    if (!input.committed()) continue;
    const Placement& known = host_placement(input);
    const NamedSharding& own = known ? *known : *first_device();
    if (own == *wanted->placement || splits_alike(own, *wanted->placement, input.shape())) continue;
    throw ValueError(
        concat("Sharding passed to jit does not match the sharding on the respective arg. Got jit sharding: ",
               to_string(*wanted->placement), ",\narg sharding: ", to_string(own),
               " for arg type: ", to_string(input.type())));
  }
}

Arrays placed_results(const Program& program, std::span<const Array> inputs, Arrays outputs) {
  const auto on_host = [](const Array& output) { return output.device() == Device{}; };
  if (std::none_of(outputs.begin(), outputs.end(), on_host)) return outputs;  // the plugin has placed them
  return with_placements(shardings_or_device(program, placements_of(inputs)), std::move(outputs));
}

Arrays placed_results(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs, Arrays outputs) {
  const Placements placements = placements_of(inputs);
  ProgramBuilder builder;
  std::vector<Atom> operands;
  for (const Array& input : inputs) operands.emplace_back(builder.add_input(input.type()));
  const std::vector<Var> results = builder.add_equation(primitive, operands, attrs);
  builder.set_outputs({results.begin(), results.end()});
  return with_placements(shardings_or_device(builder.finish(primitive.name()), placements), std::move(outputs));
}

namespace {

bool has_mesh(const NamedSharding& devices, const Mesh& mesh) {
  return devices.mesh.axis_names == mesh.axis_names && devices.mesh.axis_sizes == mesh.axis_sizes;
}

// The devices of an equal mesh: of an input, the given one, or the one in context; else those of a new sharding.
NamedSharding devices_of(const Mesh& mesh, std::span<const Array> inputs,
                         const std::shared_ptr<const NamedSharding>& given) {
  for (const Array& input : inputs) {
    if (input.is_tracer() || input.type().ref) continue;
    if (const std::optional<NamedSharding> own = jax::placement(input); own && has_mesh(*own, mesh)) return *own;
  }
  if (given && has_mesh(*given, mesh)) return *given;
  if (context_mesh() && has_mesh(*context_mesh(), mesh)) return *context_mesh();
  return jax::make_sharding(mesh, {});
}

}  // namespace

std::vector<std::shared_ptr<const NamedSharding>> result_placements(
    const Program& program, const Types& types, const std::vector<std::shared_ptr<const NamedSharding>>& inputs) {
  Placements results = shardings_or_device(program, inputs).value_or(Placements());
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (!types[i].sharding.is_explicit()) continue;
    results.resize(types.size());
    std::shared_ptr<const NamedSharding> given;
    for (const Placement& input : inputs) given = input && has_mesh(*input, types[i].sharding.mesh()) ? input : given;
    NamedSharding own = devices_of(types[i].sharding.mesh(), {}, given);
    own.spec = types[i].sharding.spec();
    results[i] = std::make_shared<const NamedSharding>(std::move(own));
  }
  return results;
}

Array left_to_compiler(const Array& x) {
  std::optional<NamedSharding> placement = jax::placement(x);
  if (!placement || !placement->mesh.any_is(AxisType::Explicit)) return x;
  for (AxisType& type : placement->mesh.axis_types) {
    if (type == AxisType::Explicit) type = AxisType::Auto;
  }
  return jax::device_put(x, *placement);
}

Arrays placed_by_types(const Types& types, std::span<const Array> inputs, Arrays outputs,
                       const std::shared_ptr<const NamedSharding>& devices) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!types[i].sharding.is_explicit() || outputs[i].is_tracer() || outputs[i].type().ref) continue;
    NamedSharding placement = devices_of(types[i].sharding.mesh(), inputs, devices);
    placement.mesh = types[i].sharding.mesh();
    placement.spec = types[i].sharding.spec();
    outputs[i] = jax::device_put(outputs[i], placement);
  }
  return outputs;
}

}  // namespace capibara
