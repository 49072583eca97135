// Splits arrays into shards for the devices of a mesh, and joins them.
#include "backends/pjrt/sharded_buffer.h"

#include "core/array/byte_count.h"
#include "core/runtime/transfer_guard.h"

#include <capibara/error.h>

#include <cstring>
#include <set>

namespace capibara::pjrt {

namespace {

// Visits the rows of a block inside a larger array: offsets of a row in the block and in the whole, and its length.
template <class Visit>
void for_each_row(const Shape& whole, const Shape& block, const Shape& offset, const Visit& visit) {
  const std::size_t rank = whole.size();
  if (element_count(block) == 0) return;
  if (rank == 0) return visit(int64_t{0}, int64_t{0}, int64_t{1});
  Shape index(rank, 0);
  const int64_t row = block[rank - 1];
  for (int64_t done = 0;; done += row) {
    int64_t place = 0;
    for (std::size_t dim = 0; dim < rank; ++dim) place = place * whole[dim] + offset[dim] + index[dim];
    visit(done, place, row);
    std::size_t dim = rank - 1;
    for (;;) {
      if (dim == 0) return;
      --dim;
      if (++index[dim] < block[dim]) break;
      index[dim] = 0;
    }
  }
}

}  // namespace

ShardedBuffer::ShardedBuffer(Client& client, ArrayType type, std::shared_ptr<const NamedSharding> placement,
                             std::vector<std::shared_ptr<DeviceBuffer>> parts)
    : client_(client), type_(std::move(type)), placement_(std::move(placement)), parts_(std::move(parts)) {}

bool ShardedBuffer::is_ready() {
  for (const auto& part : parts_) {
    if (part && !part->is_ready()) return false;
  }
  return true;
}

void ShardedBuffer::wait() {
  for (const auto& part : parts_) {
    if (part) part->wait();
  }
}

void ShardedBuffer::release() {
  for (const auto& part : parts_) {
    if (part) part->release();
  }
}

void ShardedBuffer::copy_to_host(std::byte* to) {
  const auto width = static_cast<std::size_t>(storage_size(type_.dtype));
  const Shape block = placement_->shard_shape(type_.shape);
  std::set<Shape> seen, missing;
  std::vector<std::byte> bytes(static_cast<std::size_t>(element_count(block)) * width);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Shape offset = placement_->shard_offset(type_.shape, i);
    if (!parts_[i]) {
      missing.insert(offset);
    } else if (seen.insert(offset).second) {
      parts_[i]->copy_to_host(bytes.data());
      for_each_row(type_.shape, block, offset, [&](int64_t from, int64_t place, int64_t count) {
        std::memcpy(to + static_cast<std::size_t>(place) * width, bytes.data() + static_cast<std::size_t>(from) * width,
                    static_cast<std::size_t>(count) * width);
      });
    }
  }
  for (const Shape& offset : missing) {
    if (seen.count(offset)) continue;
    throw RuntimeError(concat("Fetching value for an array of type ", to_string(type_),
                              " that spans non-addressable devices (", to_string(*placement_),
                              ") is not possible: parts of it belong to other processes"));
  }
}

Array sharded_array(Client& client, const ArrayType& type, std::shared_ptr<const NamedSharding> placement,
                    std::vector<std::shared_ptr<DeviceBuffer>> parts) {
  const Device first = client.device(placement->devices[0]);
  auto memory = std::make_shared<ShardedBuffer>(client, type, std::move(placement), std::move(parts));
  return Array::from_buffer(type, Buffer::on_device(std::move(memory), byte_count(type), first), true);
}

std::shared_ptr<ShardedBuffer> shard(Client& client, const Array& array,
                                     std::shared_ptr<const NamedSharding> placement) {
  const ArrayType& type = array.type();
  const Shape block = placement->shard_shape(type.shape);
  const bool whole = block == type.shape;
  const auto width = static_cast<std::size_t>(storage_size(type.dtype));
  std::vector<std::shared_ptr<DeviceBuffer>> parts(placement->devices.size());
  std::vector<std::pair<Shape, Array>> made;  // replicas share the host's copy
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!client.info(placement->devices[i]).addressable) continue;
    if (whole) {
      parts[i] = client.upload(array, placement->devices[i], placement->memory_kind);
      continue;
    }
    const Shape offset = placement->shard_offset(type.shape, i);
    const Array* piece = nullptr;
    for (const auto& [start, one] : made) {
      if (start == offset) piece = &one;
    }
    if (!piece) {
      const ArrayType part_type = type.with_shape(block);
      Buffer buffer = Buffer::allocate(byte_count(part_type));
      std::byte* to = buffer.mutable_data();
      const std::byte* from = array.raw_data();
      for_each_row(type.shape, block, offset, [&](int64_t done, int64_t place, int64_t count) {
        std::memcpy(to + static_cast<std::size_t>(done) * width, from + static_cast<std::size_t>(place) * width,
                    static_cast<std::size_t>(count) * width);
      });
      made.emplace_back(offset, Array::from_buffer(part_type, buffer));
      piece = &made.back().second;
    }
    parts[i] = client.upload(*piece, placement->devices[i], placement->memory_kind);
  }
  return std::make_shared<ShardedBuffer>(client, type, std::move(placement), std::move(parts));
}

Array Client::put(const Array& array, const NamedSharding& placement) {
  const transfer::Explicit wanted_transfer;
  const ArrayType& type = array.type();
  auto known = std::dynamic_pointer_cast<PlacedMemory>(array.buffer().device_memory());
  if (placement.mesh.axis_names.empty()) {
    const int device = placement.devices.at(0);
    std::string kind = placement.memory_kind;
    if (kind == info(device).default_memory) kind.clear();
    auto own = std::dynamic_pointer_cast<DeviceBuffer>(known);
    if (!(own && &own->client() == this && own->device() == device && own->memory_kind() == kind))
      own = upload(array, device, kind);
    return Array::from_buffer(type, Buffer::on_device(std::move(own), byte_count(type), this->device(device)), true);
  }
  auto wanted = std::make_shared<NamedSharding>(placement);
  if (wanted->memory_kind == info(placement.devices.at(0)).default_memory) wanted->memory_kind.clear();
  if (auto same = std::dynamic_pointer_cast<ShardedBuffer>(known);
      same && &same->client() == this && *same->placement() == *wanted) {
    return Array::from_buffer(type, array.buffer(), true);
  }
  auto memory = shard(*this, array, wanted);
  return Array::from_buffer(
      type, Buffer::on_device(std::move(memory), byte_count(type), this->device(placement.devices[0])), true);
}

std::vector<Array> ShardedBuffer::addressable_shards() const {
  std::vector<Array> shards;
  for (const auto& part : parts_) {
    if (!part) continue;
    const Buffer buffer = Buffer::on_device(part, byte_count(part->type()), client_.device(part->device()));
    shards.push_back(Array::from_buffer(part->type(), buffer, true));
  }
  return shards;
}

Array join_shards(Client& client, const Shape& shape, const NamedSharding& placement,
                  const std::vector<Array>& shards) {
  const Shape block = placement.shard_shape(shape);
  const DType dtype = shards.empty() ? DType::float32 : shards[0].dtype();
  std::size_t next = 0;
  std::vector<std::shared_ptr<DeviceBuffer>> parts(placement.devices.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!client.info(placement.devices[i]).addressable) continue;
    if (next >= shards.size() || shards[next].shape() != block || shards[next].dtype() != dtype) {
      throw ValueError(concat("join_shards: device ", placement.devices[i], " needs a part of shape ",
                              to_string(ArrayType{block, dtype, false, false, {}}),
                              next < shards.size() ? concat(", got ", to_string(shards[next].type()))
                                                   : concat(", but there are only ", shards.size(), " parts")));
    }
    parts[i] = client.buffer_of(shards[next++], placement.devices[i]);
  }
  if (next != shards.size()) {
    throw ValueError(
        concat("join_shards: expected ", next, " parts, one for each device of this process, got ", shards.size()));
  }
  return sharded_array(client, shards[0].type().strong().with_shape(shape),
                       std::make_shared<const NamedSharding>(placement), std::move(parts));
}

}  // namespace capibara::pjrt
