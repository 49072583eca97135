// Splits arrays in host memory into shards and joins them.
#include "backends/host_shards.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "core/array/body.h"
#include "core/array/format.h"
#include "core/processes/exchange.h"
#include "core/processes/job.h"
#include "core/sharding/process_grid.h"

namespace capibara {

namespace {

// True if the elements of a part are contiguous in the whole.
bool is_contiguous(const Shape& whole, const Shape& part) {
  std::size_t dim = 0;
  while (dim < whole.size() && part[dim] == 1) ++dim;
  for (++dim; dim < whole.size(); ++dim) {
    if (part[dim] != whole[dim]) return false;
  }
  return true;
}

int64_t offset_of(const Shape& whole, const Shape& index) {
  int64_t offset = 0;
  for (std::size_t dim = 0; dim < whole.size(); ++dim) offset = offset * whole[dim] + index[dim];
  return offset;
}

// Calls back for each row of a part with its offsets in elements: in the whole and in the part.
template <class Copy>
void for_each_row(const Shape& whole, const Shape& part, const Shape& begin, const Copy& copy) {
  const int64_t total = element_count(part), row = part.empty() ? 1 : part.back();
  for (int64_t at = 0; at < total; at += row) {
    Shape position = begin;
    int64_t rest = at / row;
    for (std::size_t dim = part.size(); dim-- > 0;) {
      if (dim + 1 == part.size()) continue;  // a row is copied as one
      position[dim] += rest % part[dim];
      rest /= part[dim];
    }
    copy(offset_of(whole, position), at, row);
  }
}

Array device_part(const Array& x, const Shape& part, const Shape& begin) {
  const auto bytes = static_cast<std::size_t>(storage_size(x.dtype()));
  const ArrayType type = x.type().with_shape(part);
  const std::byte* values = x.raw_data();
  if (is_contiguous(x.shape(), part)) {
    auto* first = const_cast<std::byte*>(values) + static_cast<std::size_t>(offset_of(x.shape(), begin)) * bytes;
    return Array::from_buffer(type,
                              Buffer::borrow(first, static_cast<std::size_t>(type.size()) * bytes, [held = x] {}));
  }
  Buffer buffer = Buffer::allocate(static_cast<std::size_t>(type.size()) * bytes);
  std::byte* to = buffer.mutable_data();
  for_each_row(x.shape(), part, begin, [&](int64_t in_whole, int64_t in_part, int64_t count) {
    std::memcpy(to + static_cast<std::size_t>(in_part) * bytes, values + static_cast<std::size_t>(in_whole) * bytes,
                static_cast<std::size_t>(count) * bytes);
  });
  return Array::from_buffer(type, std::move(buffer));
}

std::shared_ptr<const NamedSharding> on_device(const NamedSharding& placement, int device) {
  return std::make_shared<const NamedSharding>(
      NamedSharding{placement.platform, {device}, {}, {}, placement.memory_kind});
}

// The positions of a placement's devices by process.
std::map<int, std::vector<std::size_t>> positions_by_process(const NamedSharding& placement) {
  std::map<int, std::vector<std::size_t>> positions;
  for (std::size_t position = 0; position < placement.devices.size(); ++position)
    positions[process_of_device(placement.devices[position])].push_back(position);
  return positions;
}

// The parts of every process of the group, one after the other.
struct Parts {
  std::vector<std::byte> own, all;
};

}  // namespace

std::vector<Array> shards_of_all_processes(const NamedSharding& placement, const std::vector<Array>& own) {
  const auto positions = positions_by_process(placement);
  processes::Call call{concat("make_array of parts ", own.empty() ? "" : to_string(own[0].type()))};
  for (const auto& [process, of_process] : positions) {
    call.group.push_back(process);
    if (of_process.size() == own.size() && !own.empty()) continue;
    throw ValueError(concat("an array across processes needs as many devices in each of them, got ", of_process.size(),
                            " in process ", process, " and ", own.size(), " parts in this one"));
  }
  const ArrayType type = own[0].type();
  const auto bytes = static_cast<std::size_t>(type.size() * storage_size(type.dtype));
  auto parts = std::make_shared<Parts>();
  for (const Array& shard : own) {
    if (shard.shape() != type.shape || shard.dtype() != type.dtype)
      throw ValueError(
          concat("parts of an array must have one type, got ", to_string(type), " and ", to_string(shard.type())));
    parts->own.insert(parts->own.end(), shard.raw_data(), shard.raw_data() + bytes);
  }
  parts->all.resize(parts->own.size() * positions.size());
  call.owner = parts;
  processes::exchange().all_gather(call, parts->own.data(), parts->all.data(), parts->own.size()).wait();
  std::vector<Array> shards(placement.devices.size());
  const std::byte* from = parts->all.data();
  for (const auto& [process, of_process] : positions) {
    for (const std::size_t position : of_process) {
      Buffer buffer = Buffer::allocate(bytes);
      if (bytes) std::memcpy(buffer.mutable_data(), from, bytes);
      shards[position] = Array::from_buffer(type, std::move(buffer));
      from += bytes;
    }
  }
  return shards;
}

std::vector<Array> host_shards(const Array& x, const NamedSharding& placement) {
  const Shape part = placement.shard_shape(x.shape());
  std::map<Shape, Array> known;
  std::vector<Array> shards;
  const int own = processes::exchanging().own;
  for (std::size_t position = 0; position < placement.devices.size(); ++position) {
    if (process_of_device(placement.devices[position]) != own) continue;
    const Shape begin = placement.shard_offset(x.shape(), position);
    auto [it, added] = known.try_emplace(begin);
    if (added) it->second = device_part(x, part, begin);
    shards.push_back(placed_on_host(it->second, on_device(placement, placement.devices[position])));
  }
  return shards;
}

Array joined_host_shards(const Shape& shape, const NamedSharding& placement, const std::vector<Array>& shards) {
  const Shape part = placement.shard_shape(shape);
  if (shards.size() != placement.devices.size()) {
    throw ValueError(concat("join_shards: expected ", placement.devices.size(), " parts for ", to_string(placement),
                            ", got ", shards.size()));
  }
  for (const Array& shard : shards) {
    if (shard.shape() == part && shard.dtype() == shards[0].dtype()) continue;
    throw ValueError(concat("Expected shard shape ", shape_tuple(part), " doesn't match the single device array shape ",
                            shape_tuple(shard.shape()), ". Shape of Array is ", shape_tuple(shape), " with sharding ",
                            to_string(placement)));
  }
  const ArrayType type = shards[0].type().with_shape(shape);
  const auto bytes = static_cast<std::size_t>(storage_size(type.dtype));
  Buffer buffer = Buffer::allocate(static_cast<std::size_t>(type.size()) * bytes);
  std::byte* to = buffer.mutable_data();
  for (std::size_t position = shards.size(); position-- > 0;) {  // of equal parts, the first device's is kept
    const std::byte* from = shards[position].raw_data();
    for_each_row(
        shape, part, placement.shard_offset(shape, position), [&](int64_t in_whole, int64_t in_part, int64_t count) {
          std::memcpy(to + static_cast<std::size_t>(in_whole) * bytes, from + static_cast<std::size_t>(in_part) * bytes,
                      static_cast<std::size_t>(count) * bytes);
        });
  }
  return placed_on_host(Array::from_buffer(type, std::move(buffer)), std::make_shared<const NamedSharding>(placement));
}

}  // namespace capibara
