// The placement of a program's outputs, read from the compiled program, a protocol buffers message.
//
// HloModuleProto 12 is the sharding of the outputs. OpSharding: 1 kind (0 replicated, 1 maximal, 2 tuple, 3 tiles), 3
// tile counts, per dimension and then of replicas, 4 the devices of the tiles, 5 the members of a tuple, 9 and
// 10 shape and permutation of an iota that lists the devices.
#include <capibara/error.h>

#include <numeric>

#include "backends/pjrt/sharded_buffer.h"
#include "io/files/protobuf.h"

namespace capibara::pjrt {

namespace {

[[noreturn]] void refuse() { throw RuntimeError("sharding of outputs: the plugin's message is malformed"); }

void require_read(const ProtobufReader& fields) {
  if (fields.failed()) refuse();
}

// Appends the integers of a repeated field: packed, or a single one.
void add_integers(const ProtobufReader& field, uint32_t number, Ints& to) {
  if (field.is_integer(number)) to.push_back(field.signed_integer());
  if (!field.is_text(number)) return;
  const std::optional<std::vector<uint64_t>> values = field.packed();
  if (!values) refuse();
  for (const uint64_t value : *values) to.push_back(static_cast<int64_t>(value));
}

std::string_view message_in(std::string_view bytes, uint32_t number) {
  ProtobufReader fields(bytes);
  while (fields.next()) {
    if (fields.is_text(number)) return fields.text();
  }
  require_read(fields);
  return {};
}

struct OpSharding {
  int64_t kind = 0;
  Ints tiles, devices, iota_shape, iota_permutation;
  std::vector<OpSharding> members;
};

OpSharding read_sharding(std::string_view message) {
  OpSharding sharding;
  ProtobufReader fields(message);
  while (fields.next()) {
    if (fields.is_integer(1)) sharding.kind = fields.signed_integer();
    add_integers(fields, 3, sharding.tiles);
    add_integers(fields, 4, sharding.devices);
    if (fields.is_text(5)) sharding.members.push_back(read_sharding(fields.text()));
    add_integers(fields, 9, sharding.iota_shape);
    add_integers(fields, 10, sharding.iota_permutation);
  }
  require_read(fields);
  return sharding;
}

// The devices in the order of the tiles.
Ints tile_devices(const OpSharding& sharding) {
  if (!sharding.devices.empty()) return sharding.devices;
  const Ints& shape = sharding.iota_shape;
  const std::size_t rank = shape.size();
  Ints strides(rank, 1), list, index(rank, 0);
  for (std::size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  for (int64_t count = element_count(shape); count > 0; --count) {
    int64_t device = 0;
    for (std::size_t i = 0; i < rank; ++i)
      device += index[i] * strides[static_cast<std::size_t>(sharding.iota_permutation[i])];
    list.push_back(device);
    for (std::size_t i = rank; i-- > 0;) {
      if (++index[i] < shape[static_cast<std::size_t>(sharding.iota_permutation[i])]) break;
      index[i] = 0;
    }
  }
  return list;
}

// The mesh axes that split each dimension into its tiles.
std::optional<PartitionSpec> find_spec(const OpSharding& sharding, const Mesh& mesh, std::size_t rank) {
  PartitionSpec spec{std::vector<std::vector<std::string>>(rank)};
  if (sharding.kind == 0) return PartitionSpec{};
  if (sharding.kind != 3 || sharding.tiles.size() < rank) return std::nullopt;
  const Ints devices = tile_devices(sharding);
  const std::size_t axes = mesh.axis_names.size();
  std::vector<bool> used(axes, false);
  for (std::size_t dim = 0; dim < rank; ++dim) {
    int64_t tiles = sharding.tiles[dim];
    if (tiles == 1) continue;
    int64_t behind = 1;  // tiles of the later dimensions
    for (std::size_t later = dim + 1; later < sharding.tiles.size(); ++later) behind *= sharding.tiles[later];
    // The tile index of each device along this dimension; the slowest axis is divided out first.
    Ints count(devices.size());
    for (std::size_t place = 0; place < devices.size(); ++place) {
      count[static_cast<std::size_t>(devices[place])] = static_cast<int64_t>(place) / behind % tiles;
    }
    while (tiles > 1) {
      bool found = false;
      for (std::size_t axis = 0; axis < axes && !found; ++axis) {
        const int64_t size = mesh.axis_sizes[axis];
        if (used[axis] || size == 1 || tiles % size != 0) continue;
        int64_t stride = 1;
        for (std::size_t later = axis + 1; later < axes; ++later) stride *= mesh.axis_sizes[later];
        found = true;
        for (std::size_t device = 0; device < count.size() && found; ++device) {
          found = count[device] / (tiles / size) == static_cast<int64_t>(device) / stride % size;
        }
        if (!found) continue;
        used[axis] = true;
        spec.dims[dim].push_back(mesh.axis_names[axis]);
        tiles /= size;
        for (int64_t& value : count) value %= tiles;
      }
      if (!found) return std::nullopt;
    }
  }
  while (!spec.dims.empty() && spec.dims.back().empty()) spec.dims.pop_back();
  return spec;
}

}  // namespace

std::vector<std::shared_ptr<const NamedSharding>> output_placements(const Compiled& compiled,
                                                                    const NamedSharding& partitions,
                                                                    const Types& types) {
  if (types.empty()) return {};
  const auto [program, format] = compiled.optimized_program();
  const std::string_view module = format == "hlo_with_config" ? message_in(program, 1) : std::string_view(program);
  const OpSharding all = read_sharding(message_in(module, 12));
  std::vector<std::shared_ptr<const NamedSharding>> placements;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const OpSharding* own = &all;
    if (all.kind == 2) {
      if (all.members.size() != types.size()) {
        throw RuntimeError(concat("sharding of outputs: the plugin reports ", all.members.size(),
                                  " outputs, the program has ", types.size()));
      }
      own = &all.members[i];
    }
    const std::optional<PartitionSpec> spec = find_spec(*own, partitions.mesh, types[i].shape.size());
    if (!spec) {
      throw NotImplementedError(concat("output ", i, " of type ", to_string(types[i]),
                                       " is placed in a way that no axes of ", mesh_text(partitions.mesh),
                                       " describe.\nHint: say by out_shardings how it should be placed."));
    }
    NamedSharding placement = partitions;
    placement.spec = *spec;
    placement.memory_kind.clear();
    placements.push_back(std::make_shared<const NamedSharding>(std::move(placement)));
  }
  return placements;
}

}  // namespace capibara::pjrt
