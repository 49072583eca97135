// Reads Shardy's operations: a manual computation becomes a shard_map. Sharding annotations change no values: they are
// checked, and left out unless the caller requests them.
#include <algorithm>
#include <numeric>

#include <capibara/error.h>
#include <capibara/explicit.h>
#include <capibara/lax.h>

#include "compiler/stablehlo/read_body.h"
#include "compiler/stablehlo/sharding_text.h"
#include "core/sharding/explicit.h"
#include "core/sharding/mesh_attr.h"
#include "lax/collective/collective.h"
#include "program/trace/mesh_trace.h"

namespace capibara::stablehlo {

namespace lax = jax::lax;

namespace {

const std::string& body_text(const Operation& operation, std::string_view name) {
  const Attribute attribute = operation.attributes.find(name);
  const auto* own = attribute.as<DialectAttribute>();
  if (!own) fail(operation, concat("expected an attribute of Shardy as '", name, "'"));
  return own->text;  // valid as long as the operation
}

// Checks that the axes of a sharding are axes of its mesh, each used once.
void check_axes(const Operation& operation, const ShardingText& sharding, const Mesh& mesh) {
  AxisList seen;
  const auto check = [&](const std::string& axis) {
    if (!mesh.has(axis)) fail(operation, concat("mesh @", sharding.mesh, " has no axis \"", axis, "\""));
    if (lists_axis(seen, axis)) fail(operation, concat("expected axis \"", axis, "\" once in a sharding"));
    seen.push_back(axis);
  };
  for (const AxisList& axes : sharding.dims) {
    for (const std::string& axis : axes) check(axis);
  }
  for (const std::string& axis : sharding.unreduced) check(axis);
}

// ---- manual computations -----------------------------------------------------------------------------------------

// The manual axes of a value's sharding; the other axes are left to the compiler.
PartitionSpec manual_spec(const Operation& operation, const ShardingText& sharding, const Mesh& mesh,
                          const AxisList& manual) {
  check_axes(operation, sharding, mesh);
  PartitionSpec spec;
  for (const AxisList& axes : sharding.dims) {
    AxisList& own = spec.dims.emplace_back();
    bool free = false;
    for (const std::string& axis : axes) {
      if (!lists_axis(manual, axis)) {
        free = true;
        continue;
      }
      if (free) fail(operation, concat("expected the manual axis \"", axis, "\" before those that stay free"));
      own.push_back(axis);
    }
  }
  while (!spec.dims.empty() && spec.dims.back().empty()) spec.dims.pop_back();
  return spec;
}

Attr specs_of(const Operation& operation, const std::vector<ShardingText>& shardings, const Mesh& mesh,
              const AxisList& manual) {
  std::vector<PartitionSpec> specs;
  for (const ShardingText& sharding : shardings) specs.push_back(manual_spec(operation, sharding, mesh, manual));
  return std::shared_ptr<const Opaque>(std::make_shared<const SpecsAttr>(std::move(specs)));
}

// Drops the shardings of tokens, which are no arrays.
std::vector<ShardingText> without_tokens(const std::vector<Value>& values, std::vector<ShardingText> shardings) {
  if (shardings.size() != values.size()) return shardings;  // rejected by the caller
  std::size_t kept = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i].type.is_token()) std::swap(shardings[kept++], shardings[i]);
  }
  shardings.resize(kept);
  return shardings;
}

// Devices without a platform: the map runs as lanes on any backend.
Attr mesh_attr(const Mesh& mesh, bool placed) {
  NamedSharding devices;
  if (placed) devices.platform = "cpu";
  devices.mesh = mesh;
  for (int id = 0; id < mesh.size(); ++id) devices.devices.push_back(id);
  return std::shared_ptr<const Opaque>(std::make_shared<const MeshAttr>(std::move(devices)));
}

// The manual axes of each sharding over which a sum is still pending.
std::vector<AxisList> open_sums(const std::vector<ShardingText>& shardings, const AxisList& manual) {
  std::vector<AxisList> sums;
  for (const ShardingText& sharding : shardings) {
    AxisList& own = sums.emplace_back();
    std::ranges::copy_if(sharding.unreduced, std::back_inserter(own),
                         [&](const std::string& axis) { return lists_axis(manual, axis); });
  }
  return sums;
}

// Outside the map, values are complete: for an operand with a pending sum, the first device along its axes gets the
// value and the others zeros; for such a result, the sum is computed.
Program with_sums_taken(const Program& program, const std::vector<AxisList>& in, const std::vector<AxisList>& out) {
  const auto none = [](const AxisList& axes) { return axes.empty(); };
  if (std::ranges::all_of(in, none) && std::ranges::all_of(out, none)) return program;
  return stage(
             [&](std::span<const NdArray> inputs) {
               Arrays operands(inputs.begin(), inputs.end());
               for (std::size_t i = 0; i < in.size(); ++i) {
                 for (const std::string& axis : in[i]) {
                   const NdArray index = lax::axis_index(axis), first = lax::eq(index, lax::full_like(index, 0));
                   operands[i] = lax::select(lax::broadcast(first, operands[i].shape()), operands[i],
                                             lax::full_like(operands[i], 0));
                 }
               }
               Arrays results = evaluate_program(program, operands);
               for (std::size_t i = 0; i < out.size(); ++i) {
                 if (!out[i].empty()) results[i] = lax::psum(results[i], lax::AxisNames(out[i].begin(), out[i].end()));
               }
               return results;
             },
             program.input_types(), "shmap_body")
      .program;
}

struct Entered {
  ModuleReader& module;
  Entered(ModuleReader& module, ManualScope scope) : module(module) { module.enter(std::move(scope)); }
  ~Entered() { module.leave(); }
};

Arrays read_manual(BodyReader& body, const Operation& operation, const Arrays& operands) {
  const std::vector<ShardingText> in =
      without_tokens(operation.operands, read_shardings_text(operation, body_text(operation, "in_shardings")));
  const std::vector<ShardingText> out =
      without_tokens(operation.results, read_shardings_text(operation, body_text(operation, "out_shardings")));
  if (in.size() != operands.size() || out.size() != result_types(operation).size()) {
    fail(operation, concat("expected a sharding for each of ", operands.size(), " operands and ",
                           result_types(operation).size(), " results, got ", in.size(), " and ", out.size()));
  }
  if (in.empty() && out.empty()) fail(operation, "expected operands or results");
  const std::string& name = (in.empty() ? out : in)[0].mesh;
  for (const std::vector<ShardingText>* list : {&in, &out}) {
    for (const ShardingText& one : *list) {
      if (one.mesh != name) fail(operation, concat("expected shardings of one mesh, got @", name, " and @", one.mesh));
    }
  }
  ManualScope scope{body.module().mesh_in_order(operation, name), {}};
  const ManualScope* around = body.module().manual();
  const AxisList given = read_axes_text(operation, body_text(operation, "manual_axes"));
  for (const std::string& axis : given) {
    if (!scope.mesh.has(axis)) fail(operation, concat("mesh @", name, " has no axis \"", axis, "\""));
    if (around && lists_axis(around->bound, axis)) fail(operation, concat("axis \"", axis, "\" is manual already"));
  }
  if (around && !(around->mesh == scope.mesh)) {
    throw UnsupportedError(concat(place_of(operation), ": a manual computation inside one over another mesh than @",
                                  name, " is not supported"));
  }
  AxisList manual;
  for (const std::string& axis : scope.mesh.axis_names) {
    if (lists_axis(given, axis)) manual.push_back(axis);
    if (lists_axis(given, axis) || (around && lists_axis(around->bound, axis))) scope.bound.push_back(axis);
  }
  const Mesh mesh = scope.mesh;
  const Attr in_specs = specs_of(operation, in, mesh, manual), out_specs = specs_of(operation, out, mesh, manual);
  if (operation.regions.size() != 1) fail(operation, "expected one region");
  const Program program = [&] {
    const Entered entered(body.module(), std::move(scope));
    const MeshScope axes(mesh, manual, false);
    return with_sums_taken(body.closed_region(operation, operation.regions[0]), open_sums(in, manual),
                           open_sums(out, manual));
  }();
  return bind_named("shard_map", operands,
                    {{"check_vma", false},
                     {"in_specs", in_specs},
                     {"jaxpr", program},
                     {"mesh", mesh_attr(mesh, body.module().options().placements)},
                     {"newly_manual_axes", lax::name_list(manual)},
                     {"out_specs", out_specs}});
}

Arrays read_constraint(BodyReader& body, const Operation& operation, const Arrays& operands) {
  require_operands(operation, operands, 1);
  check_sharding(body.module(), operation, operation.attributes.find("sharding"), operands[0].shape().size());
  if (!body.module().options().placements || body.module().manual()) return operands;
  const ShardingText text = read_sharding_text(operation, body_text(operation, "sharding"));
  if (!text.unreduced.empty()) return operands;
  NamedSharding placement;
  placement.platform = "cpu";
  placement.mesh = body.module().mesh_of(operation, text.mesh);
  placement.devices.resize(static_cast<std::size_t>(placement.mesh.size()));
  std::iota(placement.devices.begin(), placement.devices.end(), 0);
  std::vector<int64_t> open;
  for (std::size_t dim = 0; dim < text.dims.size(); ++dim) {
    int64_t parts = 1;
    for (const std::string& axis : text.dims[dim]) parts *= placement.mesh.axis_size(axis);
    if (operands[0].shape()[dim] % parts != 0) return operands;  // parts of unequal sizes, which this library never has
    if (text.open[dim]) open.push_back(static_cast<int64_t>(dim));
  }
  placement.spec.dims = text.dims;
  return {lax::with_sharding_constraint(operands[0], placement, open)};
}

Arrays read_mesh(BodyReader&, const Operation& operation, const Arrays&) {
  fail(operation, "expected meshes at the level of the module, got one in a function");
}

}  // namespace

void check_sharding(const ModuleReader& module, const Operation& operation, const Attribute& sharding,
                    std::size_t rank) {
  const auto* own = sharding.as<DialectAttribute>();
  if (!own) fail(operation, "expected a sharding");
  const ShardingText text = read_sharding_text(operation, own->text);
  check_axes(operation, text, module.mesh_of(operation, text.mesh));
  if (text.dims.size() != rank) {
    fail(operation,
         concat("expected a sharding of ", rank, " dimensions, got ", text.dims.size(), " in <", own->text, ">"));
  }
}

Mesh ModuleReader::mesh_in_order(const Operation& operation, const std::string& name) const {
  DeviceMesh found = find_mesh(module_, operation, name);
  if (found.in_order()) return std::move(found.mesh);
  throw UnsupportedError(concat(place_of(operation), ": the devices of mesh @", name,
                                " are supported in the order of their numbers, got ",
                                list_text(Ints(found.devices.begin(), found.devices.end()))));
}

DeviceMesh find_mesh(const Module& module, const Operation& reader, const std::string& name) {
  for (const Operation& one : module.operations) {
    if (one.name == "sdy.mesh" && string_attribute(one, "sym_name") == name)
      return read_mesh_text(one, body_text(one, "mesh"));
  }
  fail(reader, concat("there is no mesh @", name));
}

OperationRule find_sharding_rule(std::string_view operation) {
  if (operation == "sdy.manual_computation") return read_manual;
  if (operation == "sdy.sharding_constraint" || operation == "sdy.reshard") return read_constraint;
  return operation == "sdy.mesh" ? read_mesh : nullptr;
}

}  // namespace capibara::stablehlo
