// How an array is laid out over devices; part of every array's type from the beginning.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace capibara {

// Who decides along an axis of a mesh: the compiler, the types of values, or the function inside shard_map.
enum class AxisType : uint8_t { Auto, Explicit, Manual };

// A named grid of devices.
struct Mesh {
  std::vector<std::string> axis_names;
  std::vector<int64_t> axis_sizes;
  std::vector<AxisType> axis_types;  // one for each axis; empty: all Auto

  int64_t size() const;
  bool has(const std::string& axis) const;
  int64_t axis_size(const std::string& axis) const;  // raises ValueError for an axis that the mesh does not have
  AxisType axis_type(std::size_t axis) const { return axis_types.empty() ? AxisType::Auto : axis_types[axis]; }
  friend bool operator==(const Mesh& a, const Mesh& b);
};

using AxisList = std::vector<std::string>;

// For each array dimension, the mesh axes it is split over; an empty entry is not split.
struct PartitionSpec {
  std::vector<AxisList> dims;
  AxisList unreduced;  // axes over which a sum is still to be taken
  AxisList reduced;    // axes over which cotangents will be summed

  friend bool operator==(const PartitionSpec&, const PartitionSpec&) = default;
};

// A mesh with a specification; the default value means one device.
class Sharding {
 public:
  Sharding() = default;
  Sharding(Mesh mesh, PartitionSpec spec);
  // The type of a value inside shard_map that may differ between devices along these axes, in the order of the mesh.
  static Sharding varying_over(Mesh mesh, AxisList axes);

  bool single_device() const { return named_ == nullptr; }
  const Mesh& mesh() const;
  const PartitionSpec& spec() const;
  const AxisList& varying() const;  // empty: the same value on every device

  friend bool operator==(const Sharding& a, const Sharding& b);

 private:
  struct Named {
    Mesh mesh;
    PartitionSpec spec;
    AxisList varying;
  };
  std::shared_ptr<const Named> named_;
};

// {V:(x,y)} as types print it; empty where nothing varies.
std::string varying_text(const Sharding& sharding);

}  // namespace capibara
