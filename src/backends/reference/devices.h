// Devices of a mesh that the reference backend steps together, and the collectives on their values.
#pragma once

#include <capibara/primitive.h>

#include <string>
#include <vector>

namespace capibara::reference {

struct DeviceAxis {
  std::string name;
  int64_t size;
};

// Devices are numbered row-major over their axes; each has its own value.
class DeviceGrid {
 public:
  explicit DeviceGrid(std::vector<DeviceAxis> axes) : axes_(std::move(axes)) {}

  const std::vector<DeviceAxis>& axes() const { return axes_; }
  std::size_t count() const;
  bool has(const std::string& axis) const;
  int64_t coordinate(std::size_t device, const std::string& axis) const;
  // The position along several axes, the last one varying fastest.
  int64_t position(std::size_t device, const std::vector<std::string>& names) const;
  // The devices that differ from this one along these axes only, in the order of their positions.
  std::vector<std::size_t> line(std::size_t device, const std::vector<std::string>& names) const;

 private:
  std::size_t axis_number(const std::string& axis) const;
  std::vector<DeviceAxis> axes_;
};

// shard_map, device by device. Not a registered kernel: the CPU backend, which borrows those, uses lanes.
Arrays run_shard_map(std::span<const Array> inputs, const Attrs& attrs);

bool is_collective(const Primitive& primitive);
// What a device receives, from its position among the members of its group and the operands of all of them.
Arrays exchanged(const Primitive& primitive, const Attrs& attrs, std::size_t place, const std::vector<Arrays>& members);
// The members of a device's group, by position on its line, if the collective has index groups.
std::vector<std::size_t> group_on_line(const Attrs& attrs, std::size_t position, std::size_t size);

}  // namespace capibara::reference
