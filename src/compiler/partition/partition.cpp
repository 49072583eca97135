// partition and output_shardings: the public functions on top of propagation and the partitioner.
#include <capibara/config.h>
#include <capibara/partition.h>
#include <capibara/shard_map.h>

#include <algorithm>

#include "compiler/optimise/passes.h"
#include "compiler/partition/flatten.h"
#include "compiler/partition/partitioner.h"
#include "core/array/format.h"
#include "core/sharding/placed_memory.h"
#include "lax/shard_map/shard_map.h"
#include "program/ir/handles.h"
#include "program/ir/nested.h"
#include "program/ir/views.h"
#include "program/trace/mesh_trace.h"
#include "program/trace/stage.h"

namespace capibara::sharding {

namespace {

bool has_mesh(const NamedSharding& sharding) { return !sharding.mesh.axis_names.empty(); }

// The first constraint that spans several devices.
std::optional<NamedSharding> constrained_devices(const Program& program) {
  std::optional<NamedSharding> found;
  for (const Equation& equation : program.equations()) {
    if (equation.primitive == prim::sharding_constraint()) {
      const NamedSharding& placement = *equation.attrs.opaque<PlacementAttr>("sharding")->placement;
      if (placement.devices.size() > 1) return placement;
    }
    const NamedSharding* devices = mapped_devices(equation);
    if (devices && !devices->platform.empty()) return *devices;  // those read from a text have no platform
    for_each_program(equation.attrs, [&](const Program& nested) {
      if (!found) found = constrained_devices(nested);
    });
    if (found) return found;
  }
  return std::nullopt;
}

std::optional<NamedSharding> devices_of(const Program& program, const MaybeShardings& in, const MaybeShardings& out) {
  for (const MaybeShardings* list : {&in, &out}) {
    for (const std::optional<NamedSharding>& sharding : *list) {
      if (sharding && has_mesh(*sharding)) return sharding;
    }
  }
  return constrained_devices(program);
}

// The mesh in whose axes results are described: the program's own if its arguments are on another mesh of the same
// devices, since results of a shard_map or a constraint cannot be described by the axes of that other one.
std::optional<NamedSharding> result_devices(const Program& program, const MaybeShardings& in,
                                            const MaybeShardings& out) {
  const std::optional<NamedSharding> given = devices_of(program, in, out), own = constrained_devices(program);
  if (!given || !own || !has_mesh(*own) || own->devices != given->devices) return given;
  const bool requested = std::any_of(out.begin(), out.end(), [](const auto& one) { return one && has_mesh(*one); });
  return requested || own->mesh.axis_names == given->mesh.axis_names ? given : own;
}

// Specifications on another mesh of the same devices are ignored.
Demands demands_of(const Mesh& mesh, const MaybeShardings& given, const Types& types) {
  Demands demands;
  for (std::size_t i = 0; i < types.size(); ++i) {
    demands.emplace_back();
    if (i >= given.size() || !given[i] || given[i]->mesh.axis_names != mesh.axis_names) continue;
    std::optional<Layout> layout = layout_of(mesh, given[i]->spec, types[i].shape.size());
    if (layout && divides(mesh, types[i].shape, *layout)) demands.back() = Demand{std::move(*layout), {}};
  }
  return demands;
}

bool has_other_effects(const Program& program) {
  Effects effects = program.effects();
  effects.axes.clear();
  return !effects.empty();
}

}  // namespace

std::optional<std::vector<NamedSharding>> output_shardings(const Program& program, const MaybeShardings& inputs,
                                                           const MaybeShardings& outputs) {
  std::optional<NamedSharding> devices = result_devices(program, inputs, outputs);
  if (!devices) return std::nullopt;
  const Program flat = flattened(passes::expanded(program));
  const Mesh& mesh = devices->mesh;
  const Shardings found = propagate(flat, mesh, demands_of(mesh, inputs, program.input_types()),
                                    demands_of(mesh, outputs, program.output_types()));
  std::vector<NamedSharding> out;
  for (const Layout& layout : found.outputs) {
    out.push_back(*devices);
    out.back().spec = spec_of(mesh, layout);
  }
  return out;
}

PartitionedProgram partition(const Program& given, const MaybeShardings& inputs, const MaybeShardings& outputs) {
  const Program program = passes::expanded(given);
  std::optional<NamedSharding> devices = devices_of(program, inputs, outputs);
  if (!devices) throw ValueError("partition: no input, output or constraint names a mesh");
  if (has_other_effects(program))
    throw NotImplementedError("partition: programs with effects, such as callbacks and refs, are not partitioned");
  Config wide = config();
  wide.enable_x64 = true;  // the program keeps its own types
  const ConfigScope types_scope(wide);
  devices->spec = {};
  PartitionedProgram out;
  out.devices = *devices;
  const Mesh& mesh = out.devices.mesh;
  const Program flat = flattened(passes::strengthen(program));
  const Demands in = demands_of(mesh, inputs, program.input_types());
  const Shardings found = propagate(flat, mesh, in, demands_of(mesh, outputs, program.output_types()));
  Types types;
  std::vector<Layout> layouts;
  for (const Var var : flat.invars()) {
    layouts.push_back(found.vars[static_cast<std::size_t>(var.id)]);
    ArrayType type = flat.type(var);
    type.shape = local_shape(mesh, type.shape, layouts.back());
    type.sharding = {};
    types.push_back(type);
    out.in_specs.push_back(spec_of(mesh, layouts.back()));
  }
  for (const Layout& layout : found.outputs) out.out_specs.push_back(spec_of(mesh, layout));
  Partitioner partitioner(out.devices);
  const MeshScope scope(mesh, mesh.axis_names, false);
  const Staged staged = stage(
      [&](std::span<const Array> parts) {
        Locals locals;
        for (std::size_t i = 0; i < parts.size(); ++i) locals.push_back({parts[i], layouts[i]});
        return partitioner.run(flat, found, std::move(locals));
      },
      types, program.name());
  out.local = passes::dce(staged.program);
  out.collectives = partitioner.collectives();
  return out;
}

Program PartitionedProgram::whole() const {
  Types types = local.input_types();
  for (std::size_t i = 0; i < types.size(); ++i) {
    const Layout layout = *layout_of(devices.mesh, in_specs[i], types[i].shape.size());
    for (std::size_t dim = 0; dim < layout.size(); ++dim) types[i].shape[dim] *= parts_of(devices.mesh, layout[dim]);
  }
  detail::ShardMapCall call{devices, false, in_specs, devices.mesh.axis_names, false, local.name()};
  return stage(
             [&](std::span<const Array> arrays) {
               return detail::shard_map_flat(
                   [&](std::span<const Array> parts) { return evaluate_program(local, parts); }, arrays, call,
                   [&](const std::vector<ArrayType>&) { return out_specs; });
             },
             types, local.name())
      .program;
}

double PartitionedProgram::bytes() const {
  double total = 0;
  for (const InsertedCollective& collective : collectives)
    total += collective.bytes * static_cast<double>(collective.times);
  return total;
}

std::string PartitionedProgram::text() const {
  std::string text;
  for (const InsertedCollective& one : collectives) {
    std::string axes;
    for (const std::string& axis : one.axes) axes += concat(axes.empty() ? "" : ", ", axis);
    text += concat(one.operation, " over ", axes, " of ", to_string(one.operand), ": ", static_cast<int64_t>(one.bytes),
                   " bytes", one.times > 1 ? concat(" x ", one.times) : std::string(),
                   one.source.empty() ? std::string() : concat(", ", one.source), "; ", one.cause, "\n");
  }
  return text + concat(collectives.size(), collectives.size() == 1 ? " collective, " : " collectives, ",
                       static_cast<int64_t>(bytes()), " bytes to each device\n");
}

}  // namespace capibara::sharding
