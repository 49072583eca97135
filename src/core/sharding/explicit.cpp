// Shardings of types: the Explicit part of a specification, the attribute that requests one, the mesh in context.
#include "core/sharding/explicit.h"

#include <algorithm>

#include "core/array/hash.h"
#include "core/sharding/mesh_attr.h"
#include "core/sharding/placed_memory.h"

namespace capibara {

namespace {

AxisList explicit_axes(const Mesh& mesh, const AxisList& axes) {
  AxisList kept;
  for (const std::string& axis : axes) {
    if (mesh.type_of(axis) == AxisType::Explicit) kept.push_back(axis);
  }
  return kept;
}

std::string entry_text(const AxisList& axes) {
  if (axes.empty()) return "None";
  std::string text = concat("'", axes[0], "'");
  for (std::size_t i = 1; i < axes.size(); ++i) text += concat(", '", axes[i], "'");
  return axes.size() == 1 ? text : concat("(", text, ")");
}

struct Context {
  std::shared_ptr<const NamedSharding> mesh;
  std::size_t key = 0;
};

Context& context() {
  thread_local Context own;
  return own;
}

std::size_t mesh_key(const NamedSharding& devices) {
  Hasher hasher;
  const std::string text = mesh_text(devices.mesh);
  hasher.bytes(text.data(), text.size());
  for (int device : devices.devices) hasher.mix(static_cast<std::size_t>(device));
  return hasher.value() | 1;
}

}  // namespace

bool lists_axis(const AxisList& axes, const std::string& axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

Sharding type_sharding(const Mesh& mesh, const PartitionSpec& spec, std::size_t rank, const AxisList& varying) {
  if (!mesh.any_is(AxisType::Explicit)) return Sharding::varying_over(mesh, varying);
  PartitionSpec own;
  for (std::size_t dim = 0; dim < rank; ++dim)
    own.dims.push_back(dim < spec.dims.size() ? explicit_axes(mesh, spec.dims[dim]) : AxisList{});
  own.unreduced = explicit_axes(mesh, spec.unreduced);
  own.reduced = explicit_axes(mesh, spec.reduced);
  return Sharding::explicit_over(mesh, std::move(own), varying);
}

Sharding type_sharding(const NamedSharding& placement, std::size_t rank) {
  return type_sharding(placement.mesh, placement.spec, rank);
}

ArrayType without_splits(ArrayType type) {
  if (type.sharding.is_explicit())
    type.sharding = Sharding::varying_over(type.sharding.mesh(), type.sharding.varying());
  return type;
}

bool any_splits(std::span<const ArrayType> types) {
  return std::any_of(types.begin(), types.end(), [](const ArrayType& type) { return type.sharding.is_explicit(); });
}

const AxisList& split_axes(const ArrayType& type, std::size_t dim) {
  static const AxisList none;
  const bool named = type.sharding.is_explicit() && dim < type.sharding.spec().dims.size();
  return named ? type.sharding.spec().dims[dim] : none;
}

bool ShardingAttr::equals(const Opaque& other) const {
  const auto* same = dynamic_cast<const ShardingAttr*>(&other);
  if (!same || !(sharding == same->sharding) || !devices != !same->devices) return false;
  return !devices || *devices == *same->devices;
}

std::size_t ShardingAttr::hash() const {
  Hasher hasher;
  const std::string text = print();
  hasher.bytes(text.data(), text.size());
  return hasher.value();
}

std::string ShardingAttr::print() const { return sharding_text(sharding); }

Attr sharding_attr(const Sharding& sharding) {
  if (!sharding.is_explicit() || !sharding.mesh().any_is(AxisType::Explicit)) return Attr();
  return Attr(std::shared_ptr<const Opaque>(std::make_shared<const ShardingAttr>(sharding)));
}

const ShardingAttr* requested_sharding(const Attrs& attrs) {
  for (const char* name : {"sharding", "out_sharding", "dst_sharding"}) {
    const Attr* attr = attrs.find(name);
    const auto* opaque = attr ? attr->get_if<std::shared_ptr<const Opaque>>() : nullptr;
    if (!opaque) continue;
    if (const auto* requested = dynamic_cast<const ShardingAttr*>(opaque->get())) return requested;
  }
  return nullptr;
}

std::string abstract_mesh_text(const Mesh& mesh) { return concat("Abstract", mesh_text(mesh)); }

std::string sharding_text(const Sharding& sharding) {
  if (sharding.single_device()) return "NamedSharding(mesh=AbstractMesh((), axis_types=()), spec=P())";
  return concat("NamedSharding(mesh=", abstract_mesh_text(sharding.mesh()), ", spec=", spec_text(sharding.spec()), ")");
}

std::string partitions_text(const PartitionSpec& spec) {
  std::string text = "(";
  for (std::size_t i = 0; i < spec.dims.size(); ++i) text += concat(i ? ", " : "", entry_text(spec.dims[i]));
  return text + (spec.dims.size() == 1 ? ",)" : ")");
}

std::string axis_set_text(const AxisList& axes) {
  if (axes.empty()) return "frozenset()";
  std::string text;
  for (const std::string& axis : axes) text += concat(text.empty() ? "'" : ", '", axis, "'");
  return concat("frozenset({", text, "})");
}

const std::shared_ptr<const NamedSharding>& context_mesh() { return context().mesh; }

void set_context_mesh(std::shared_ptr<const NamedSharding> devices) {
  const std::size_t key = devices ? mesh_key(*devices) : 0;
  context() = {std::move(devices), key};
}

std::size_t context_mesh_key() { return context().key; }

}  // namespace capibara
