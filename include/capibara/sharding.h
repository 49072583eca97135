// How an array is laid out over devices: part of the type of every array.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace capibara {

// Who determines shardings along a mesh axis: the compiler, the types of values, or the function inside shard_map.
enum class AxisType : uint8_t { Auto, Explicit, Manual };

// A named grid of devices.
struct Mesh {
  std::vector<std::string> axis_names;
  std::vector<int64_t> axis_sizes;
  std::vector<AxisType> axis_types;  // one per axis; empty: all Auto

  int64_t size() const;
  bool has(const std::string& axis) const;
  int64_t axis_size(const std::string& axis) const;  // raises ValueError for an unknown axis
  AxisType axis_type(std::size_t axis) const { return axis_types.empty() ? AxisType::Auto : axis_types[axis]; }
  AxisType type_of(const std::string& axis) const;  // raises ValueError for an unknown axis
  bool any_is(AxisType type) const;                 // true if some axis has this type
  friend bool operator==(const Mesh& a, const Mesh& b);
};

using AxisList = std::vector<std::string>;

// For each array dimension, the mesh axes it is split over; an empty entry is not split.
struct PartitionSpec {
  std::vector<AxisList> dims;
  AxisList unreduced;  // axes over which a sum is pending
  AxisList reduced;    // axes over which cotangents will be summed

  friend bool operator==(const PartitionSpec&, const PartitionSpec&) = default;
};

// A mesh with a specification; the default value is a single device.
class Sharding {
 public:
  Sharding() = default;
  Sharding(Mesh mesh, PartitionSpec spec);
  // The type of a value under Explicit axes: `spec` has one entry per dimension and names only Explicit axes.
  static Sharding explicit_over(Mesh mesh, PartitionSpec spec, AxisList varying = {});
  // The type of a value inside shard_map that may differ between devices along these axes, in mesh order.
  static Sharding varying_over(Mesh mesh, AxisList axes);

  bool single_device() const { return named_ == nullptr; }
  bool is_explicit() const { return named_ && named_->is_explicit; }  // true if `spec` is part of the type
  const Mesh& mesh() const;
  const PartitionSpec& spec() const;
  const AxisList& varying() const;  // empty: the same value on every device

  friend bool operator==(const Sharding& a, const Sharding& b);

 private:
  struct Named {
    Mesh mesh;
    PartitionSpec spec;
    AxisList varying;
    bool is_explicit = false;
  };
  std::shared_ptr<const Named> named_;
};

// {V:(x,y), U:z} as printed in types: axes that vary (V), axes to be summed (U) and axes of summed cotangents (R).
std::string varying_text(const Sharding& sharding);
// The axes that split a dimension as printed in types: @x or @(x,y); empty if there are none.
std::string split_text(const Sharding& sharding, std::size_t dim);

// True if any value of this process has had an Explicit type.
bool explicit_types_exist();

}  // namespace capibara
