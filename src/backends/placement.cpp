// Moves arrays to devices: the public functions on top of the backends that have devices of their own.
#include <capibara/placement.h>

#include "backends/backend.h"
#include "backends/host_shards.h"
#include "core/array/body.h"
#include "core/sharding/placed_memory.h"

namespace capibara::jax {

NamedSharding make_sharding(const Mesh& mesh, const PartitionSpec& spec, const std::string& platform) {
  const std::vector<Device> all = devices(platform);
  if (mesh.size() > static_cast<int64_t>(all.size())) {
    throw ValueError(
        concat("Number of devices ", all.size(), " must be >= the product of mesh_shape ", mesh_text(mesh)));
  }
  NamedSharding placement{all[0].platform, {}, mesh, spec, ""};
  for (int64_t i = 0; i < mesh.size(); ++i) placement.devices.push_back(all[static_cast<std::size_t>(i)].id);
  for (std::size_t dim = 0; dim < spec.dims.size(); ++dim) placement.parts(dim);  // raises if an axis does not exist
  return placement;
}

namespace {

// The types of arrays on an Explicit mesh contain its axes.
Array typed(const Array& placed, const NamedSharding& placement) {
  if (placed.type().ref || host_placement(placed)) return placed;
  ArrayType type = placed.type();
  type.sharding = type_sharding(placement, type.shape.size());
  return type == placed.type() ? placed : Array::from_buffer(type, placed.buffer(), placed.committed());
}

}  // namespace

Array device_put(const Array& x, const NamedSharding& placement) {
  if (x.is_tracer()) return lax::with_sharding_constraint(x, placement);
  return typed(holder(placement.platform).put(x, placement), placement);
}

Array device_put(const Array& x, const Device& device) {
  if (x.is_tracer()) return x;
  return device_put(x, NamedSharding{device.platform, {device.id}, {}, {}, ""});
}

std::optional<NamedSharding> placement(const Array& x) {
  if (x.is_tracer()) return std::nullopt;
  if (const auto& own = host_placement(x)) return *own;
  if (x.buffer().device() == Device{}) return std::nullopt;  // a plugin's buffer is then only a copy
  const auto placed = std::dynamic_pointer_cast<PlacedMemory>(x.buffer().device_memory());
  return placed ? std::optional(*placed->placement()) : std::nullopt;
}

std::vector<Array> addressable_shards(const Array& x) {
  if (const auto& own = host_placement(x)) return host_shards(x, *own);
  const auto placed = std::dynamic_pointer_cast<PlacedMemory>(x.buffer().device_memory());
  std::vector<Array> shards = placed ? placed->addressable_shards() : std::vector<Array>{};
  return shards.empty() ? std::vector<Array>{x} : shards;
}

Array join_shards(const Shape& shape, const NamedSharding& placement, const std::vector<Array>& shards) {
  return typed(holder(placement.platform).join(shape, placement, shards), placement);
}

}  // namespace capibara::jax
