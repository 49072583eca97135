// How an array is laid out over devices; part of every array's type from the beginning.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace capibara {

// A named grid of devices.
struct Mesh {
  std::vector<std::string> axis_names;
  std::vector<int64_t> axis_sizes;

  int64_t size() const;
  friend bool operator==(const Mesh&, const Mesh&) = default;
};

// For each array dimension, the mesh axes it is split over; an empty entry is not split.
struct PartitionSpec {
  std::vector<std::vector<std::string>> dims;

  friend bool operator==(const PartitionSpec&, const PartitionSpec&) = default;
};

// A mesh with a specification; the default value means one device.
class Sharding {
 public:
  Sharding() = default;
  Sharding(Mesh mesh, PartitionSpec spec);

  bool single_device() const { return named_ == nullptr; }
  const Mesh& mesh() const;
  const PartitionSpec& spec() const;

  friend bool operator==(const Sharding& a, const Sharding& b);

 private:
  struct Named {
    Mesh mesh;
    PartitionSpec spec;
  };
  std::shared_ptr<const Named> named_;
};

}  // namespace capibara
