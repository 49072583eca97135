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
  AxisType type_of(const std::string& axis) const;  // raises ValueError for an axis that the mesh does not have
  bool any_is(AxisType type) const;                 // whether an axis has this type
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
  // The type of a value under Explicit axes: `spec` has one entry for each dimension and names Explicit axes alone.
  static Sharding explicit_over(Mesh mesh, PartitionSpec spec, AxisList varying = {});
  // The type of a value inside shard_map that may differ between devices along these axes, in the order of the mesh.
  static Sharding varying_over(Mesh mesh, AxisList axes);

  bool single_device() const { return named_ == nullptr; }
  bool is_explicit() const { return named_ && named_->is_explicit; }  // whether `spec` is part of the type
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

// {V:(x,y), U:z} as types print what varies, what is still to be summed (U) and what cotangents are summed over (R).
std::string varying_text(const Sharding& sharding);
// The axes that split a dimension as types print them: @x or @(x,y); empty where none does.
std::string split_text(const Sharding& sharding, std::size_t dim);

// Whether any value of this process has had an Explicit type.
bool explicit_types_exist();

}  // namespace capibara
