// Moving arrays to devices: the public functions over the backends that have devices of their own.
#include <capibara/placement.h>

#include "backends/pjrt/backend.h"
#include "backends/pjrt/sharded_buffer.h"

namespace capibara::jax {

namespace {

Array on_host(const Array& x, const NamedSharding& placement) {
  if (placement.devices.size() > 1) {
    throw ValueError(concat("device_put: arrays of platform '", placement.platform, "' lie in the memory of the one process, got ", to_string(placement),
                            "; choose a plugin's platform, such as JAX_PLATFORMS=xla_cpu, for several devices"));
  }
  if (placement.devices.at(0) != 0) {
    throw NotImplementedError(concat("device_put: the native backend keeps arrays on ", placement.platform, ":0, got ", placement.platform, ":",
                                     placement.devices[0], "; choose a plugin's platform, such as JAX_PLATFORMS=xla_cpu, for several devices"));
  }
  const std::string& kind = placement.memory_kind;
  if (!kind.empty() && kind != "device") {
    throw ValueError(concat("Could not find memory addressable by device ", placement.platform, ":", placement.devices.at(0),
                            ". It can address the following memory kinds: device. Got memory kind: ", kind));
  }
  if (x.buffer().device() == Device{"cpu", 0}) return Array::from_buffer(x.type(), x.buffer(), true);
  Buffer buffer = Buffer::allocate(static_cast<std::size_t>(x.size() * storage_size(x.dtype())));
  if (x.size() > 0) std::copy(x.raw_data(), x.raw_data() + buffer.size(), buffer.mutable_data());
  return Array::from_buffer(x.type(), buffer, true);
}

}  // namespace

NamedSharding make_sharding(const Mesh& mesh, const PartitionSpec& spec, const std::string& platform) {
  const std::vector<Device> all = devices(platform);
  if (mesh.size() > static_cast<int64_t>(all.size())) {
    throw ValueError(concat("Number of devices ", all.size(), " must be >= the product of mesh_shape ", mesh_text(mesh)));
  }
  NamedSharding placement{all[0].platform, {}, mesh, spec, ""};
  for (int64_t i = 0; i < mesh.size(); ++i) placement.devices.push_back(all[static_cast<std::size_t>(i)].id);
  for (std::size_t dim = 0; dim < spec.dims.size(); ++dim) placement.parts(dim);  // raises for axes that do not exist
  return placement;
}

Array device_put(const Array& x, const NamedSharding& placement) {
  if (x.is_tracer()) return lax::with_sharding_constraint(x, placement);
  if (pjrt::Client* client = pjrt::client_of(placement.platform)) return client->put(x, placement);
  return on_host(x, placement);
}

Array device_put(const Array& x, const Device& device) {
  if (x.is_tracer()) return x;
  return device_put(x, NamedSharding{device.platform, {device.id}, {}, {}, ""});
}

std::optional<NamedSharding> placement(const Array& x) {
  if (x.is_tracer()) return std::nullopt;
  if (x.buffer().device() == Device{}) return std::nullopt;  // a plugin's copy of it is only that
  const auto placed = std::dynamic_pointer_cast<PlacedMemory>(x.buffer().device_memory());
  return placed ? std::optional(*placed->placement()) : std::nullopt;
}

std::vector<Array> addressable_shards(const Array& x) {
  const auto sharded = std::dynamic_pointer_cast<pjrt::ShardedBuffer>(x.buffer().device_memory());
  if (!sharded) return {x};
  std::vector<Array> shards;
  for (const auto& part : sharded->parts()) {
    if (!part) continue;
    const auto bytes = static_cast<std::size_t>(part->type().size() * storage_size(part->type().dtype));
    shards.push_back(Array::from_buffer(part->type(), Buffer::on_device(part, bytes, sharded->client().device(part->device())), true));
  }
  return shards;
}

Array join_shards(const Shape& shape, const NamedSharding& placement, const std::vector<Array>& shards) {
  pjrt::Client* client = pjrt::client_of(placement.platform);
  const Shape block = placement.shard_shape(shape);
  if (!client) throw ValueError(concat("join_shards: platform '", placement.platform, "' has no devices of its own"));
  std::size_t next = 0;
  std::vector<std::shared_ptr<pjrt::DeviceBuffer>> parts(placement.devices.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!client->info(placement.devices[i]).addressable) continue;
    if (next >= shards.size() || shards[next].shape() != block || shards[next].dtype() != shards[0].dtype()) {
      throw ValueError(concat("join_shards: device ", placement.devices[i], " needs a part of shape ", to_string(ArrayType{block, shards.empty() ? DType::float32 : shards[0].dtype(), false, false, {}}),
                              next < shards.size() ? concat(", got ", to_string(shards[next].type())) : concat(", but there are only ", shards.size(), " parts")));
    }
    parts[i] = client->buffer_of(shards[next++], placement.devices[i]);
  }
  if (next != shards.size()) throw ValueError(concat("join_shards: expected ", next, " parts, one for each device of this process, got ", shards.size()));
  return pjrt::sharded_array(*client, shards[0].type().strong().with_shape(shape),
                             std::make_shared<const NamedSharding>(placement), std::move(parts));
}

}  // namespace capibara::jax
