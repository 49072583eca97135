// sharding_constraint and reshard: identities with a required placement, or with another sharding in the type.
#include <capibara/explicit.h>

#include <algorithm>

#include "core/sharding/placed_memory.h"
#include "lax/elementwise/elementwise.h"
#include "lax/families.h"
#include "lax/rules.h"
#include "lax/sharding/factors.h"
#include "lax/sharding/splits.h"
#include "lax/sharding/user_partition.h"
#include "program/derive/spmd.h"
#include "program/ir/explicit_types.h"
#include "program/ir/handles.h"

namespace capibara {

namespace {

Array constrained(const Array& x, const Attrs& attrs) { return bind1(primitive("sharding_constraint"), {x}, attrs); }

void refuse_used_axes(const AxisList& spmd, const PartitionSpec& spec) {
  for (const AxisList& entry : spec.dims) {
    for (const std::string& axis : entry) {
      if (std::find(spmd.begin(), spmd.end(), axis) == spmd.end()) continue;
      throw ValueError(concat("vmap spmd_axis_name ", axis_tuple(spmd),
                              " cannot appear in with_sharding_constraint spec, but got spec P",
                              partitions_text(spec)));
    }
  }
}

// The mapped axis is sharded over the axes of spmd_axis_name; without them it is placed by the compiler. The dimensions
// after it move by one.
BatchResult batch_constraint(const BatchArgs& args) {
  const int64_t axis = args.dims[0];
  const auto old = args.attrs.opaque<PlacementAttr>("sharding");
  const AxisList& spmd = spmd_axes(args.axis);
  NamedSharding placement = *old->placement;
  std::vector<AxisList>& dims = placement.spec.dims;
  refuse_used_axes(spmd, placement.spec);
  if (!spmd.empty() && axis > static_cast<int64_t>(dims.size())) dims.resize(static_cast<std::size_t>(axis));
  if (!spmd.empty() || axis < static_cast<int64_t>(dims.size())) dims.insert(dims.begin() + axis, spmd);
  Ints unconstrained;
  for (int64_t dim : args.attrs.ints("unconstrained_dims")) unconstrained.push_back(dim + (dim >= axis ? 1 : 0));
  if (spmd.empty()) unconstrained.push_back(axis);
  std::sort(unconstrained.begin(), unconstrained.end());
  const std::shared_ptr<const Opaque> moved = std::make_shared<PlacementAttr>(std::move(placement), old->border);
  return {{constrained(args.inputs[0], args.attrs.with("sharding", moved).with("unconstrained_dims", unconstrained))},
          {axis}};
}

std::optional<std::string> print_attribute(const std::string& name, const Attr& attr) {
  if (name == "context_mesh") return "Mesh()";
  if (name != "unconstrained_dims") return std::nullopt;
  std::string text;
  for (int64_t dim : *attr.get_if<Ints>()) text += concat(text.empty() ? "" : ", ", dim);
  return concat("frozenset({", text, "})");
}

Array resharded(const Array& x, const Sharding& sharding, std::shared_ptr<const NamedSharding> devices) {
  const std::shared_ptr<const Opaque> wanted = std::make_shared<const ShardingAttr>(sharding, std::move(devices));
  return bind1(prim::reshard(), {x}, {{"dst_sharding", wanted}});
}

const ShardingAttr& destination(const Attrs& attrs) { return *attrs.opaque<ShardingAttr>("dst_sharding"); }

PrimitiveRecord reshard_record() {
  PrimitiveRecord record;
  record.name = "reshard";
  record.traits.mesh_axes = MeshAxes::exchanged;
  record.factors = elementwise_factors;
  record.doc = "The identity, with another sharding in its type.";
  record.type = [](std::span<const ArrayType> types, const Attrs& attrs) {
    require_count("reshard", types, 1);
    const Sharding& wanted = destination(attrs).sharding;
    ArrayType type = without_splits(types[0]);
    if (wanted.is_explicit()) {
      if (wanted.spec().dims.size() != type.shape.size()) {
        throw ValueError(concat("reshard: the specification must have one entry for each dimension of ",
                                to_string(type), ", got ", partitions_text(wanted.spec())));
      }
      type.sharding = Sharding::explicit_over(wanted.mesh(), wanted.spec(), type.sharding.varying());
      check_divides(type);
    }
    return TypeResult(Types{type});
  };
  record.jvp = [](const JvpArgs& args) {
    return JvpResult{{bind1(args.primitive, {args.primals[0]}, args.attrs)},
                     {bind1(args.primitive, {args.tangents[0]}, args.attrs)}};
  };
  record.transpose = [](const TransposeArgs& args) -> Arrays {
    if (!args.cotangents[0].defined()) return {Array()};
    return {resharded(args.cotangents[0], cotangent_sharding(args.types[0].sharding), destination(args.attrs).devices)};
  };
  record.batch = [](const BatchArgs& args) -> BatchResult {
    const Sharding wanted = batched_sharding(args, args.inputs[0], args.dims[0], args.dims[0]);
    return {{resharded(args.inputs[0], wanted, destination(args.attrs).devices)}, {args.dims[0]}};
  };
  record.lower = [](std::span<const Array> in, const Attrs&) { return Arrays{in[0]}; };
  record.samples = [](DType dtype) {
    const std::shared_ptr<const Opaque> nothing = std::make_shared<const ShardingAttr>(Sharding());
    return std::vector<Sample>{{{ArrayType{{2, 3}, dtype, false, false, {}}}, {{"dst_sharding", nothing}}}};
  };
  return record;
}

std::vector<Sample> samples(DType dtype) {
  // A single device, of any platform.
  const std::shared_ptr<const Opaque> one =
      std::make_shared<PlacementAttr>(NamedSharding{"", {0}, Mesh{{"x"}, {1}}, PartitionSpec{{{"x"}}}, ""});
  return {Sample{{ArrayType{{2, 3}, dtype, false, false, {}}},
                 {{"sharding", one}, {"unconstrained_dims", Ints{}}, {"context_mesh", Attr()}, {"layout", Attr()}}}};
}

}  // namespace

Family sharding_family() {
  PrimitiveRecord record;
  record.name = "sharding_constraint";
  record.factors = elementwise_factors;
  record.splits = same_splits;
  record.doc = "The identity, with a required placement of its value on devices.";
  record.type = [](std::span<const ArrayType> types, const Attrs& attrs) {
    require_count("sharding_constraint", types, 1);
    attrs.opaque<PlacementAttr>("sharding")->placement->shard_shape(types[0].shape);
    return TypeResult(Types{types[0]});
  };
  record.jvp = [](const JvpArgs& args) {
    return JvpResult{{constrained(args.primals[0], args.attrs)}, {constrained(args.tangents[0], args.attrs)}};
  };
  record.transpose = [](const TransposeArgs& args) { return Arrays{constrained(args.cotangents[0], args.attrs)}; };
  record.batch = batch_constraint;
  record.print_attr = print_attribute;
  record.stablehlo = "sdy.sharding_constraint";
  record.samples = samples;
  return {record, reshard_record(), custom_partition_record()};
}

namespace jax::lax {

Array with_sharding_constraint(const Array& x, const NamedSharding& placement,
                               const std::vector<int64_t>& unconstrained) {
  const std::shared_ptr<const Opaque> sharding = std::make_shared<PlacementAttr>(placement);
  return constrained(x, {{"sharding", sharding},
                         {"unconstrained_dims", Ints(unconstrained)},
                         {"context_mesh", Attr()},
                         {"layout", Attr()}});
}

}  // namespace jax::lax

namespace jax {

Mesh make_mesh(const std::vector<int64_t>& axis_sizes, const std::vector<std::string>& axis_names,
               const std::vector<AxisType>& axis_types) {
  if (axis_sizes.size() != axis_names.size()) {
    throw ValueError(concat("Number of axis names should match the number of axis_shapes. Got ", axis_names.size(),
                            " names and ", axis_sizes.size(), " sizes"));
  }
  std::vector<AxisType> types = axis_types;
  if (types.empty()) types.assign(axis_names.size(), AxisType::Explicit);
  return Mesh{axis_names, axis_sizes, std::move(types)};
}

Scope set_mesh(const Mesh& mesh, const std::string& platform) {
  const std::shared_ptr<const NamedSharding> before = context_mesh();
  set_context_mesh(std::make_shared<const NamedSharding>(make_sharding(mesh, {}, platform)));
  return Scope(std::shared_ptr<void>(nullptr, [before](void*) { set_context_mesh(before); }));
}

const ArrayType& type_of(const Array& x) { return x.type(); }

Array reshard(const Array& x, const PartitionSpec& spec) {
  const auto& around = context_mesh();
  if (!around) {
    throw ValueError(
        concat("Using PartitionSpec when you are not under a mesh context is not allowed. Please pass a "
               "NamedSharding instance or enter into a mesh context via `jax.set_mesh`. Got P",
               partitions_text(spec)));
  }
  NamedSharding placement = *around;
  placement.spec = spec;
  return reshard(x, placement);
}

Array reshard(const Array& x, const NamedSharding& sharding) {
  const auto rank = static_cast<std::size_t>(x.ndim());
  if (sharding.spec.dims.size() > rank) {
    throw ValueError(concat("PartitionSpec P", partitions_text(sharding.spec),
                            " is only valid for values of rank at least ", sharding.spec.dims.size(),
                            ", but was applied to a value of rank ", rank, "."));
  }
  return resharded(x, type_sharding(sharding, rank), std::make_shared<const NamedSharding>(sharding));
}

}  // namespace jax
}  // namespace capibara
