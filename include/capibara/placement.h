// Shardings of arrays: which device holds which part of an array, and how to move arrays there.
#pragma once

#include <capibara/array.h>

#include <optional>
#include <string>
#include <vector>

namespace capibara {

// A mesh of devices, and its axes that split each dimension; without axes, one device. Dimensions that `spec`
// does not name are not split.
struct NamedSharding {
  std::string platform;      // of all devices
  std::vector<int> devices;  // ids, in row-major order of the mesh
  Mesh mesh;
  PartitionSpec spec;
  std::string memory_kind;  // empty: the device's own memory

  // The number of parts that a dimension is split into.
  int64_t parts(std::size_t dim) const;
  bool replicated() const;  // every device holds the whole array
  // The shape of one device's part of an array. Raises ValueError if the parts would be unequal or the array has too
  // few dimensions.
  Shape shard_shape(const Shape& shape) const;
  // The offset of the part of the device at this position of the mesh, one index per dimension.
  Shape shard_offset(const Shape& shape, std::size_t position) const;

  friend bool operator==(const NamedSharding&, const NamedSharding&) = default;
};

// The sharding in the type of an array of this rank with this placement: the Explicit axes that split each dimension.
// Empty if the mesh has none.
Sharding type_sharding(const NamedSharding& placement, std::size_t rank);

// The sharding as {x=4,y=2} [x, (y)] on xla_cpu.
std::string to_string(const NamedSharding& placement);

namespace jax {

// A sharding on a mesh of the first devices of a platform, by default the default platform.
NamedSharding make_sharding(const Mesh& mesh, const PartitionSpec& spec, const std::string& platform = "");

// The array moved to a device, or distributed according to a sharding.
Array device_put(const Array& x, const Device& device);
Array device_put(const Array& x, const NamedSharding& placement);
// The sharding of an array; absent for an array in host memory.
std::optional<NamedSharding> placement(const Array& x);
// The part of an array on each device of its sharding, as arrays of those devices.
std::vector<Array> addressable_shards(const Array& x);
// One array from its parts on a plugin's devices, one for each device of this process in the order of the sharding.
Array join_shards(const Shape& shape, const NamedSharding& placement, const std::vector<Array>& shards);

namespace lax {
// Constrains x's placement inside a compiled program; `unconstrained` dimensions are left to the compiler.
Array with_sharding_constraint(const Array& x, const NamedSharding& placement,
                               const std::vector<int64_t>& unconstrained = {});
}  // namespace lax

}  // namespace jax
}  // namespace capibara
