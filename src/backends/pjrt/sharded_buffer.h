// ShardedBuffer: an array in equal parts on the devices of a mesh.
#pragma once

#include <capibara/primitive.h>

#include "backends/pjrt/client.h"

namespace capibara::pjrt {

class ShardedBuffer final : public PlacedMemory {
 public:
  // One part per position of the mesh; those of other processes are null.
  ShardedBuffer(Client& client, ArrayType type, std::shared_ptr<const NamedSharding> placement,
                std::vector<std::shared_ptr<DeviceBuffer>> parts);

  bool is_ready() override;
  void wait() override;
  void copy_to_host(std::byte* to) override;
  void release() override;

  Client& client() const { return client_; }
  std::shared_ptr<const NamedSharding> placement() const override { return placement_; }
  std::vector<Array> addressable_shards() const override;
  const std::vector<std::shared_ptr<DeviceBuffer>>& parts() const { return parts_; }

 private:
  Client& client_;
  ArrayType type_;
  std::shared_ptr<const NamedSharding> placement_;
  std::vector<std::shared_ptr<DeviceBuffer>> parts_;
};

// Splits an array and sends the shards, or copies it if it does not need to be split.
std::shared_ptr<ShardedBuffer> shard(Client& client, const Array& array,
                                     std::shared_ptr<const NamedSharding> placement);
Array sharded_array(Client& client, const ArrayType& type, std::shared_ptr<const NamedSharding> placement,
                    std::vector<std::shared_ptr<DeviceBuffer>> parts);

// Joins one part per device of this process, in the order of the placement's devices.
Array join_shards(Client& client, const Shape& shape, const NamedSharding& placement, const std::vector<Array>& shards);

// The placement of each output of a program over this mesh, as the compiler chose. `types` are those of whole arrays.
std::vector<std::shared_ptr<const NamedSharding>> output_placements(const Compiled& compiled,
                                                                    const NamedSharding& partitions,
                                                                    const Types& types);

}  // namespace capibara::pjrt
