// Removes the shardings from all types of a program.
#include "program/ir/plain_types.h"

#include <map>
#include <optional>

#include "core/array/body.h"
#include "core/sharding/explicit.h"
#include "core/sharding/placed_memory.h"
#include "program/ir/handles.h"
#include "program/ir/nested.h"
#include "program/ir/views.h"

namespace capibara {

Array with_plain_type(const Array& value) {
  ArrayType type = value.type();
  type.sharding = {};
  return Array(
      std::make_shared<const ConcreteBody>(std::move(type), value.buffer(), value.committed(), host_placement(value)));
}

Array unplaced(const Array& value) {
  ArrayType type = value.type();
  type.sharding = {};
  return Array(std::make_shared<const ConcreteBody>(std::move(type), value.buffer(), false, nullptr));
}

namespace {

void make_plain(std::vector<Array>& values) {
  for (Array& value : values) {
    if (value.type().sharding.single_device()) continue;
    value = with_plain_type(value);
  }
}

}  // namespace

bool has_explicit_types(const Program& program) {
  if (!explicit_types_exist()) return false;
  if (any_splits(program.body().var_types)) return true;
  for (const Equation& equation : program.equations()) {
    if (requested_sharding(equation.attrs) || any_program(equation.attrs, has_explicit_types)) return true;
  }
  return false;
}

Attrs with_plain_attrs(const Attrs& attrs) {
  if (!requested_sharding(attrs)) return attrs;
  return attrs.with(attrs.has("sharding") ? "sharding" : "out_sharding", Attr());
}

namespace {

// A reshard on known devices, as a constraint on the placement of its result.
std::optional<Attrs> constraint_of(const Attrs& attrs) {
  const ShardingAttr& wanted = *requested_sharding(attrs);
  const bool places = wanted.devices && wanted.devices->devices.size() > 1 && wanted.sharding.is_explicit();
  if (!places || !wanted.sharding.spec().unreduced.empty()) return std::nullopt;
  NamedSharding placement = *wanted.devices;
  placement.spec = wanted.sharding.spec();
  const std::shared_ptr<const Opaque> sharding = std::make_shared<const PlacementAttr>(std::move(placement));
  return Attrs{{"sharding", sharding}, {"unconstrained_dims", Ints{}}, {"context_mesh", Attr()}, {"layout", Attr()}};
}

// The constraint equivalent to a type; empty if the type leaves the sharding open.
std::optional<Attrs> constraint_of(const ArrayType& type, const NamedSharding* devices) {
  if (!type.sharding.is_explicit() || type.sharding.mesh().size() < 2 || !type.sharding.spec().unreduced.empty())
    return std::nullopt;
  const Mesh& mesh = type.sharding.mesh();
  NamedSharding placement{"cpu", {}, mesh, type.sharding.spec(), ""};
  if (devices && devices->mesh.axis_names == mesh.axis_names && devices->mesh.axis_sizes == mesh.axis_sizes) {
    placement.platform = devices->platform;
    placement.devices = devices->devices;
  } else {
    for (int id = 0; id < mesh.size(); ++id) placement.devices.push_back(id);
  }
  placement.spec.reduced.clear();
  Ints open;  // dimensions that the compiler's axes may split
  for (std::size_t dim = 0; mesh.any_is(AxisType::Auto) && dim < type.shape.size(); ++dim) {
    if (placement.spec.dims[dim].empty()) open.push_back(static_cast<int64_t>(dim));
  }
  const std::shared_ptr<const Opaque> sharding = std::make_shared<const PlacementAttr>(std::move(placement));
  return Attrs{{"sharding", sharding}, {"unconstrained_dims", open}, {"context_mesh", Attr()}, {"layout", Attr()}};
}

}  // namespace

Program with_type_constraints(const Program& program, const NamedSharding* devices) {
  Program::Body body = program.body();
  std::vector<Equation> equations;
  for (Equation& equation : body.equations) {
    const Primitive& primitive = equation.primitive;
    // These state the placement of their results themselves.
    if (maps_devices(primitive) || primitive == prim::reshard() || primitive == prim::sharding_constraint()) {
      equations.push_back(std::move(equation));
      continue;
    }
    equation.attrs =
        rewrite_programs(equation.attrs, [&](const Program& nested) { return with_type_constraints(nested, devices); });
    std::vector<Equation> constraints;
    for (Var& output : equation.outputs) {
      if (output.dropped()) continue;
      const ArrayType type = body.var_types[static_cast<std::size_t>(output.id)];
      std::optional<Attrs> attrs = constraint_of(type, devices);
      if (!attrs) continue;
      const Var made{static_cast<int32_t>(body.var_types.size())};
      body.var_types.push_back(type);
      constraints.push_back({prim::sharding_constraint(), {Atom(made)}, {output}, *attrs, {}, equation.source});
      output = made;
    }
    equations.push_back(std::move(equation));
    for (Equation& constraint : constraints) equations.push_back(std::move(constraint));
  }
  body.equations = std::move(equations);
  return Program(std::move(body));
}

Program with_plain_types(const Program& program) {
  Program::Body body = program.body();
  for (ArrayType& type : body.var_types) type.sharding = {};
  make_plain(body.literals);
  make_plain(body.constants);
  std::map<int32_t, Atom> same;  // results of reshard, and the values that they equal
  auto resolve = [&](Atom& atom) {
    if (atom.is_literal()) return;
    if (auto it = same.find(atom.code); it != same.end()) atom = it->second;
  };
  std::vector<Equation> equations;
  for (Equation& equation : body.equations) {
    for (Atom& input : equation.inputs) resolve(input);
    if (equation.primitive == prim::reshard()) {
      if (std::optional<Attrs> constraint = constraint_of(equation.attrs)) {
        equation.primitive = prim::sharding_constraint();
        equation.attrs = *constraint;
      } else {
        if (!equation.outputs[0].dropped()) same.emplace(equation.outputs[0].id, equation.inputs[0]);
        continue;
      }
    }
    equation.attrs = rewrite_programs(with_plain_attrs(equation.attrs), with_plain_types);
    equations.push_back(std::move(equation));
  }
  body.equations = std::move(equations);
  for (Atom& output : body.outputs) resolve(output);
  return Program(std::move(body));
}

}  // namespace capibara
