// Shardings that are part of types: made of meshes and specifications, carried by equations, printed as jax does.
#pragma once

#include <capibara/attributes.h>
#include <capibara/placement.h>

namespace capibara {

bool lists_axis(const AxisList& axes, const std::string& axis);

// The sharding in the type of a value with this placement: the Explicit axes of each dimension. Empty if no axis is
// Explicit.
Sharding type_sharding(const Mesh& mesh, const PartitionSpec& spec, std::size_t rank, const AxisList& varying = {});
// The type without what Explicit axes split; what varies stays.
ArrayType without_splits(ArrayType type);
bool any_splits(std::span<const ArrayType> types);
// The axes that split a dimension; none where no Explicit axis does.
const AxisList& split_axes(const ArrayType& type, std::size_t dim);

// The sharding that an equation requests for its result, and the devices of the mesh where they are known.
class ShardingAttr final : public Opaque {
 public:
  explicit ShardingAttr(Sharding sharding, std::shared_ptr<const NamedSharding> devices = nullptr)
      : sharding(std::move(sharding)), devices(std::move(devices)) {}

  bool equals(const Opaque& other) const override;
  std::size_t hash() const override;
  std::string print() const override;

  const Sharding sharding;
  const std::shared_ptr<const NamedSharding> devices;
};

// The attribute of a type's sharding; None where it has no Explicit axes.
Attr sharding_attr(const Sharding& sharding);
// The sharding that `sharding` or `out_sharding` of an equation requests; null if neither does.
const ShardingAttr* requested_sharding(const Attrs& attrs);

std::string abstract_mesh_text(const Mesh& mesh);        // AbstractMesh('x': 4, axis_types=(Explicit,))
std::string sharding_text(const Sharding& sharding);     // NamedSharding(mesh=AbstractMesh(...), spec=P('x', None))
std::string partitions_text(const PartitionSpec& spec);  // ('x', None)
std::string axis_set_text(const AxisList& axes);         // frozenset({'x'})

// The mesh in whose context this thread traces and computes; null where there is none.
const std::shared_ptr<const NamedSharding>& context_mesh();
void set_context_mesh(std::shared_ptr<const NamedSharding> devices);
std::size_t context_mesh_key();  // equal for equal meshes; 0 without one

}  // namespace capibara
