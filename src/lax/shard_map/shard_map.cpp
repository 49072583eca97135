// shard_map: a program that every device of a mesh runs on its part of the operands.
#include "lax/shard_map/shard_map.h"

#include <capibara/shard_map.h>

#include <algorithm>

#include "core/array/format.h"
#include "core/sharding/explicit.h"
#include "lax/collective/collective.h"
#include "lax/shard_map/shard_map_devices.h"
#include "program/derive/spmd.h"
#include "program/ir/handles.h"
#include "program/ir/manual_axes.h"
#include "program/ir/varying.h"

namespace capibara {

namespace {

AxisList named_axes(const PartitionSpec& spec) {
  AxisList axes;
  for (const AxisList& entry : spec.dims) axes.insert(axes.end(), entry.begin(), entry.end());
  return axes;
}

Attr specs_attr(Specs specs) {
  return Attr(std::shared_ptr<const Opaque>(std::make_shared<const SpecsAttr>(std::move(specs))));
}

TypeResult shard_map_type(std::span<const ArrayType> types, const Attrs& attrs) {
  const ShardMapView map(attrs);
  if (types.size() != map.in_specs().size() || types.size() != map.program().invars().size()) {
    throw TypeError(
        concat("shard_map: the function takes ", map.program().invars().size(), " arrays, got ", types.size()));
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    const ArrayType local = local_type(types[i], map.in_specs()[i], map),
                    &own = map.program().type(map.program().invars()[i]);
    if (local.shape == own.shape && local.dtype == own.dtype) continue;
    throw TypeError(
        concat("shard_map: operand ", i, " must have parts of type ", to_string(own), ", got ", to_string(local)));
  }
  Types results = map.program().output_types();
  for (std::size_t i = 0; i < results.size(); ++i) results[i] = global_type(results[i], map.out_specs()[i], map);
  Effects effects = map.program().effects();
  for (const std::string& axis : map.manual()) effects.remove_axis(axis);
  return TypeResult(std::move(results), effects);
}

JvpResult jvp_shard_map(const JvpArgs& args) {
  const ShardMapView map(args.attrs);
  const Mask nonzero = defined_mask(args.tangents);
  const JvpProgram derived = [&] {
    const MeshScope scope = map.scope();
    return jvp_program(map.program(), nonzero);
  }();
  Arrays operands(args.primals.begin(), args.primals.end());
  append(operands, where(args.tangents, nonzero));
  const Arrays outputs = map.bind(derived.program, operands, joined(map.in_specs(), where(map.in_specs(), nonzero)),
                                  joined(map.out_specs(), where(map.out_specs(), derived.nonzero_outputs)));
  const std::size_t count = map.out_specs().size();
  return {part(outputs, 0, count), spread(part(outputs, count, outputs.size()), derived.nonzero_outputs)};
}

// The specification with a dimension inserted at `dim` that these axes split.
PartitionSpec with_dimension(PartitionSpec spec, int64_t dim, const AxisList& axes) {
  if (dim == not_mapped) return spec;
  const auto at = static_cast<std::size_t>(dim);
  if (spec.dims.size() < at) spec.dims.resize(at);
  spec.dims.insert(spec.dims.begin() + dim, axes);
  return spec;
}

Specs with_dimensions(Specs specs, std::span<const int64_t> dims, const AxisList& axes) {
  for (std::size_t i = 0; i < specs.size(); ++i) specs[i] = with_dimension(specs[i], dims[i], axes);
  return specs;
}

void refuse_spmd_axes(const char* word, const Specs& specs, const AxisList& axes) {
  for (const PartitionSpec& spec : specs) {
    for (const std::string& named : named_axes(spec)) {
      if (lists_axis(axes, named)) throw ValueError(concat("vmap spmd_axis_name cannot appear in shard_map ", word));
    }
  }
}

// The mapped axis on one device: its part of the members if spmd_axis_name shards them over manual axes.
MappedAxis axis_of_device(const MappedAxis& axis, const ShardMapView& map) {
  const AxisList& named = spmd_axes(axis);
  if (named.empty()) return axis;
  refuse_spmd_axes("in_specs", map.in_specs(), named);
  refuse_spmd_axes("out_specs", map.out_specs(), named);
  AxisList axes;
  for (const std::string& one : named) {
    map.mesh().axis_size(one);  // raises for an axis of another mesh
    if (lists_axis(map.manual(), one)) axes.push_back(one);
  }
  const int64_t parts = map.size(axes);
  if (axis.size % parts != 0) {
    throw ValueError(concat("vmap: the mapped axis of size ", axis.size, " cannot be laid over the mesh axes ",
                            axis_tuple(axes), " of spmd_axis_name, which have ", parts, " devices"));
  }
  MappedAxis own{axis.name, axis.size / parts, {}};
  if (!axes.empty()) own.split = Sharding(map.checked() ? map.mesh() : Mesh{}, PartitionSpec{{axes}, {}, {}});
  return own;
}

BatchResult batch_shard_map(const BatchArgs& args) {
  const ShardMapView map(args.attrs);
  const MappedAxis axis = axis_of_device(args.axis, map);
  const BatchedCall derived = [&] {
    const MeshScope scope = map.scope();
    return batch_call(map.program(), axis, args.dims, false);
  }();
  const AxisList& spmd = spmd_axes(axis);
  return {map.bind(derived.program, args.inputs, with_dimensions(map.in_specs(), args.dims, spmd),
                   with_dimensions(map.out_specs(), derived.dims, spmd)),
          derived.dims};
}

DceResult dce_shard_map(const Attrs& attrs, const Mask& used) {
  const ShardMapView map(attrs);
  const DceProgram pruned = dce_program(map.program(), used);
  return {pruned.used_inputs,
          map.with(pruned.program, where(map.in_specs(), pruned.used_inputs), where(map.out_specs(), used)),
          {}};
}

std::optional<std::string> print_manual_axes(const std::string& name, const Attr& attr) {
  if (name != "newly_manual_axes") return std::nullopt;
  std::string text;
  for (const Attr& axis : **attr.get_if<std::shared_ptr<const Attr::List>>()) {
    text += concat(text.empty() ? "'" : ", '", *axis.get_if<std::string>(), "'");
  }
  return concat("frozenset({", text, "})");
}

}  // namespace

ShardMapView::ShardMapView(const Attrs& attrs)
    : attrs_(attrs),
      program_(attrs_.program("jaxpr")),
      mesh_(attrs.opaque<MeshAttr>("mesh")),
      in_(attrs.opaque<SpecsAttr>("in_specs")),
      out_(attrs.opaque<SpecsAttr>("out_specs")),
      manual_(axis_names(attrs, "newly_manual_axes")),
      checked_(attrs.boolean("check_vma")) {}

Attrs ShardMapView::with(const Program& program, Specs in_specs, Specs out_specs) const {
  return attrs_.with("jaxpr", program)
      .with("in_specs", specs_attr(std::move(in_specs)))
      .with("out_specs", specs_attr(std::move(out_specs)));
}

Arrays ShardMapView::bind(const Program& program, std::span<const Array> inputs, Specs in_specs,
                          Specs out_specs) const {
  return capibara::bind(prim::shard_map(), inputs, with(program, std::move(in_specs), std::move(out_specs)));
}

AxisList ShardMapView::unnamed(const PartitionSpec& spec) const {
  AxisList rest;
  AxisList named = named_axes(spec);
  named.insert(named.end(), spec.unreduced.begin(), spec.unreduced.end());
  for (const std::string& axis : manual_) {
    if (!lists_axis(named, axis)) rest.push_back(axis);
  }
  return rest;
}

int64_t ShardMapView::size(const AxisList& axes) const {
  int64_t product = 1;
  for (const std::string& axis : axes) product *= mesh().axis_size(axis);
  return product;
}

Specs where(const Specs& specs, const std::vector<bool>& mask) {
  Specs chosen;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (mask[i]) chosen.push_back(specs[i]);
  }
  return chosen;
}

Specs joined(Specs a, const Specs& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

namespace {

Mesh with_axis_types(Mesh mesh, const AxisList& axes, AxisType type) {
  if (mesh.axis_types.empty()) mesh.axis_types.assign(mesh.axis_names.size(), AxisType::Auto);
  for (std::size_t i = 0; i < mesh.axis_names.size(); ++i) {
    if (lists_axis(axes, mesh.axis_names[i])) mesh.axis_types[i] = type;
  }
  return mesh;
}

// Inside, the axes that became manual split no dimension.
Sharding inside(const ArrayType& type, const ShardMapView& map) {
  if (!type.sharding.is_explicit()) return type.sharding;
  const Mesh mesh = with_axis_types(type.sharding.mesh(), map.manual(), AxisType::Manual);
  return type_sharding(mesh, type.sharding.spec(), type.shape.size(), type.sharding.varying());
}

void refuse_sums(const char* place, const char* word, const PartitionSpec& spec, const ArrayType& type) {
  throw ValueError(
      place == std::string("in_specs")
          ? concat("in_specs containing ", word, " ", spec_text(spec), " passed to shard_map should be equal to the ",
                   word, " present on the in_aval ", short_string(type))
          : concat("out_specs passed to shard_map should be equal to the ", word,
                   " present on the out_aval. Got out_specs=", spec_text(spec), " and out_aval=", short_string(type)));
}

bool same_axes(const AxisList& a, const AxisList& b) {
  return a.size() == b.size() &&
         std::all_of(a.begin(), a.end(), [&](const std::string& axis) { return lists_axis(b, axis); });
}

// Checks that the unreduced and reduced axes of a specification are those of the type.
void check_sums(const char* place, const PartitionSpec& spec, const ArrayType& type, const AxisList& unreduced,
                const AxisList& reduced) {
  if (!same_axes(spec.unreduced, unreduced)) refuse_sums(place, "unreduced", spec, type);
  if (!same_axes(spec.reduced, reduced)) refuse_sums(place, "reduced", spec, type);
}

// Outside, Explicit axes split dimensions by the specification, before the axes that split the parts.
Sharding outside(const ArrayType& type, const PartitionSpec& spec, const ShardMapView& map) {
  const Sharding rest = without_varying(type.sharding, map.manual());
  const Mesh mesh = type.sharding.is_explicit()
                        ? with_axis_types(type.sharding.mesh(), map.manual(), AxisType::Explicit)
                        : map.mesh();
  if (!mesh.any_is(AxisType::Explicit)) return rest;
  PartitionSpec whole = spec;
  whole.dims.resize(type.shape.size());
  for (std::size_t d = 0; d < whole.dims.size(); ++d) {
    const AxisList& inner = split_axes(type, d);
    whole.dims[d].insert(whole.dims[d].end(), inner.begin(), inner.end());
  }
  return type_sharding(mesh, whole, type.shape.size(), rest.varying());
}

}  // namespace

ArrayType local_type(const ArrayType& type, const PartitionSpec& spec, const ShardMapView& map) {
  ArrayType local = type;
  if (spec.dims.size() > type.shape.size()) {
    throw ValueError(concat("shard_map: the specification ", spec_text(spec), " has ", spec.dims.size(),
                            " entries for an operand of type ", to_string(type)));
  }
  for (std::size_t dim = 0; dim < spec.dims.size(); ++dim) {
    const int64_t parts = map.size(spec.dims[dim]);
    if (local.shape[dim] % parts != 0) {
      throw ValueError(concat("shard_map: dimension ", dim, " of ", to_string(type), " is cut into ", parts,
                              " parts by ", spec_text(spec), ", which does not divide it"));
    }
    local.shape[dim] /= parts;
  }
  local.sharding = inside(type, map);
  if (!map.checked()) return local;
  local.sharding = joined_varying(local.sharding, Sharding::varying_over(map.mesh(), named_axes(spec)));
  const bool has_sums = !spec.unreduced.empty() || !spec.reduced.empty();
  if (!has_sums || !type.sharding.is_explicit()) return local;  // values have plain types where programs run
  local.sharding =
      manual_sharding(map.mesh(), local.shape.size(), {local.sharding.varying(), spec.unreduced, spec.reduced});
  return local;
}

ArrayType global_type(const ArrayType& type, const PartitionSpec& spec, const ShardMapView& map) {
  ArrayType whole = type;
  if (spec.dims.size() > type.shape.size()) {
    throw ValueError(concat("shard_map: the specification ", spec_text(spec), " has ", spec.dims.size(),
                            " entries for a result of type ", to_string(type)));
  }
  for (std::size_t dim = 0; dim < spec.dims.size(); ++dim) whole.shape[dim] *= map.size(spec.dims[dim]);
  whole.sharding = outside(type, spec, map);
  return whole;
}

PrimitiveRecord shard_map_record() {
  PrimitiveRecord record;
  record.name = "shard_map";
  record.doc = "Runs a program on each device of a mesh, on its part of the operands.";
  record.traits.multiple_results = true;
  record.traits.control = Control::device_map;
  record.traits.mesh_axes = MeshAxes::named;
  record.traits.own_partition = true;
  record.type = shard_map_type;
  record.jvp = jvp_shard_map;
  record.transpose = transpose_shard_map;
  record.batch = batch_shard_map;
  record.partial_eval = partial_eval_shard_map;
  record.dce = dce_shard_map;
  record.lower = [](std::span<const Array> inputs, const Attrs& attrs) {
    return is_per_device(attrs) ? Arrays{} : run_in_lanes(inputs, attrs);
  };
  record.stablehlo = "sdy.manual_computation";
  record.print_attr = print_manual_axes;
  return record;
}

}  // namespace capibara

namespace capibara::detail {

namespace {

// Results vary over the axes that their specifications name, since the parts of devices differ.
Arrays as_specified(Arrays results, const Specs& specs, const ShardMapView& map) {
  if (results.size() != specs.size()) {
    throw ValueError(concat("shard_map: there must be one out_specs entry for each result, got ", specs.size(), " for ",
                            results.size()));
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const AxisList unnamed = map.unnamed(specs[i]);
    for (const std::string& axis : unnamed) {
      if (!varies_over(results[i].type(), axis)) continue;
      throw ValueError(concat("shard_map: result ", i, " of type ", to_string(results[i].type()),
                              " varies over the mesh axis '", axis, "', but its out_specs entry ", spec_text(specs[i]),
                              " does not name it"));
    }
    if (!map.checked()) continue;
    results[i] = jax::lax::varied_over(results[i], named_axes(specs[i]));
    const AxisList taken = manual_axes_of(results[i].type()).unreduced;
    AxisList missing;
    for (const std::string& axis : map.manual()) {
      if (lists_axis(specs[i].unreduced, axis) && !lists_axis(taken, axis)) missing.push_back(axis);
    }
    if (!missing.empty())
      results[i] = bind1(prim::vary_unreduced_cast(), {results[i]}, {{"axes", jax::lax::name_list(missing)}});
    const ManualAxes own = manual_axes_of(results[i].type());
    check_sums("out_specs", specs[i], results[i].type(), own.unreduced, own.reduced);
  }
  return results;
}

}  // namespace

Arrays shard_map_flat(const FlatFunction& function, std::span<const Array> inputs, const ShardMapCall& call,
                      const SpecsOfResults& out_specs) {
  Attrs attrs{{"check_vma", call.check_vma},
              {"in_specs", specs_attr(call.in_specs)},
              {"jaxpr", Program(Program::Body{})},
              {"mesh", std::shared_ptr<const Opaque>(std::make_shared<const MeshAttr>(call.devices, call.abstract))},
              {"newly_manual_axes", jax::lax::name_list(call.manual)},
              {"out_specs", specs_attr({})}};
  const ShardMapView map(attrs);
  Types types;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Sharding& sharding = inputs[i].type().sharding;
    const bool is_typed = sharding.is_explicit() && sharding.mesh().any_is(AxisType::Explicit);
    const PartitionSpec own = is_typed ? sharding.spec() : PartitionSpec{};
    check_sums("in_specs", call.in_specs[i], inputs[i].type(), own.unreduced, own.reduced);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) types.push_back(local_type(inputs[i].type(), call.in_specs[i], map));
  Specs results;
  const Staged staged = [&] {
    const MeshScope scope = map.scope();
    return stage_open(
        [&](std::span<const Array> parts) {
          Arrays outputs = function(parts);
          results = out_specs(types_of(outputs));
          return as_specified(std::move(outputs), results, map);
        },
        types, call.name);
  }();
  Arrays operands = staged.captured;
  append(operands, inputs);
  return map.bind(staged.program, operands, joined(Specs(staged.captured.size()), call.in_specs), results);
}

}  // namespace capibara::detail

namespace capibara::jax {

std::function<Arrays(const Arrays&)> shard_map(std::function<Arrays(const Arrays&)> function, ShardMapOptions options) {
  return [function = std::move(function), options = std::move(options)](const Arrays& inputs) {
    if (inputs.size() != options.in_specs.size()) {
      throw ValueError(concat("shard_map: there must be one in_specs entry for each argument, got ",
                              options.in_specs.size(), " for ", inputs.size()));
    }
    AxisList manual;
    for (const std::string& axis : options.mesh.mesh.axis_names) {
      if (options.axis_names.empty() || lists_axis(options.axis_names, axis)) manual.push_back(axis);
    }
    const detail::ShardMapCall call{options.mesh, false, options.in_specs, manual, options.check_vma, "shard_map"};
    return detail::shard_map_flat(
        [&](std::span<const Array> parts) { return function(Arrays(parts.begin(), parts.end())); }, inputs, call,
        [&](const std::vector<ArrayType>&) { return options.out_specs; });
  };
}

}  // namespace capibara::jax
