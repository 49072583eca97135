// Attributes of shard_map: the mesh, and the specifications of its operands and results.
#pragma once

#include <capibara/attributes.h>
#include <capibara/placement.h>

namespace capibara {

class MeshAttr final : public Opaque {
 public:
  // `devices` has no specification. `abstract`: the mesh of the surrounding shard_map, printed without devices.
  explicit MeshAttr(NamedSharding devices, bool abstract = false) : devices(std::move(devices)), abstract(abstract) {}

  bool equals(const Opaque& other) const override;
  std::size_t hash() const override;
  std::string print() const override;

  const NamedSharding devices;
  const bool abstract;
};

class SpecsAttr final : public Opaque {
 public:
  explicit SpecsAttr(std::vector<PartitionSpec> specs) : specs(std::move(specs)) {}

  bool equals(const Opaque& other) const override;
  std::size_t hash() const override;
  std::string print() const override;

  const std::vector<PartitionSpec> specs;
};

std::string spec_text(const PartitionSpec& spec);  // P('x', None)

}  // namespace capibara
