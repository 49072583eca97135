// Memory with a known placement, and the attribute that carries a placement inside programs.
#pragma once

#include <capibara/array.h>
#include <capibara/attributes.h>
#include <capibara/placement.h>

namespace capibara {

// Memory of a plugin's devices: on one of them, or in parts on several.
class PlacedMemory : public DeviceMemory {
 public:
  virtual std::shared_ptr<const NamedSharding> placement() const = 0;
  // The parts on this process's devices; none where it is not in parts.
  virtual std::vector<Array> addressable_shards() const { return {}; }
};

// The attribute of sharding_constraint. At a function's boundary it constrains an argument or a result: written as
// their attribute, not as an operation.
class PlacementAttr final : public Opaque {
 public:
  enum class Border { none, argument, result };

  explicit PlacementAttr(NamedSharding placement, Border border = Border::none)
      : placement(std::make_shared<const NamedSharding>(std::move(placement))), border(border) {}

  bool equals(const Opaque& other) const override;
  std::size_t hash() const override;
  std::string print() const override;

  std::shared_ptr<const NamedSharding> placement;
  Border border;
};

std::string spec_text(const NamedSharding& placement);  // P('x', None)
std::string mesh_text(const Mesh& mesh);                // Mesh('x': 4, axis_types=(Auto,))
// The body of #sdy.sharding for an array of this rank: [{"x"}, {}].
std::string shardy_text(const PartitionSpec& spec, std::size_t rank, const std::vector<int64_t>& unconstrained = {});

}  // namespace capibara
