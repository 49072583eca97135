// sharding_constraint: the identity, with a required placement of its value on devices.
#include "lax/elementwise.h"
#include "lax/factors.h"
#include "lax/families.h"
#include "lax/rules.h"
#include "sharding/placed_memory.h"

namespace capibara {

namespace {

Array constrained(const Array& x, const Attrs& attrs) { return bind1(primitive("sharding_constraint"), {x}, attrs); }

// The mapped axis is placed by the compiler; the dimensions behind it move by one.
BatchResult batch_constraint(const BatchArgs& args) {
  const int64_t axis = args.dims[0];
  const auto old = args.attrs.opaque<PlacementAttr>("sharding");
  NamedSharding placement = *old->placement;
  std::vector<std::vector<std::string>>& dims = placement.spec.dims;
  if (axis < static_cast<int64_t>(dims.size())) dims.insert(dims.begin() + axis, std::vector<std::string>{});
  Ints unconstrained;
  for (int64_t dim : args.attrs.ints("unconstrained_dims")) {
    if (dim >= axis && (unconstrained.empty() || unconstrained.back() < axis)) unconstrained.push_back(axis);
    unconstrained.push_back(dim + (dim >= axis ? 1 : 0));
  }
  if (unconstrained.empty() || unconstrained.back() < axis) unconstrained.push_back(axis);
  const std::shared_ptr<const Opaque> moved = std::make_shared<PlacementAttr>(std::move(placement), old->border);
  return {{constrained(args.inputs[0], args.attrs.with("sharding", moved).with("unconstrained_dims", unconstrained))}, {axis}};
}

std::optional<std::string> print_attribute(const std::string& name, const Attr& attr) {
  if (name == "context_mesh") return "Mesh()";
  if (name != "unconstrained_dims") return std::nullopt;
  std::string text;
  for (int64_t dim : *attr.get_if<Ints>()) text += concat(text.empty() ? "" : ", ", dim);
  return concat("frozenset({", text, "})");
}

std::vector<Sample> samples(DType dtype) {
  // One device, of whatever platform.
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
  return {record};
}

namespace jax::lax {

Array with_sharding_constraint(const Array& x, const NamedSharding& placement,
                               const std::vector<int64_t>& unconstrained) {
  const std::shared_ptr<const Opaque> sharding = std::make_shared<PlacementAttr>(placement);
  return constrained(x, {{"sharding", sharding}, {"unconstrained_dims", Ints(unconstrained)}, {"context_mesh", Attr()}, {"layout", Attr()}});
}

}  // namespace jax::lax
}  // namespace capibara
