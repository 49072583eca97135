// shard_map: runs a function on every device of a mesh, on that device's part of the arguments.
#pragma once

#include <capibara/placement.h>
#include <capibara/primitive.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace capibara {

namespace detail {

struct ShardMapCall {
  NamedSharding devices;  // the mesh; its specification is empty
  bool abstract = false;  // true: the mesh is that of the enclosing shard_map
  std::vector<PartitionSpec> in_specs;
  AxisList manual;  // the axes that become manual, in mesh order
  bool check_vma = true;
  std::string name = "shard_map";
};
// The specifications of results of these types; may raise if they do not fit.
using SpecsOfResults = std::function<std::vector<PartitionSpec>(const std::vector<ArrayType>&)>;
Arrays shard_map_flat(const std::function<Arrays(std::span<const Array>)>& function, std::span<const Array> inputs,
                      const ShardMapCall& call, const SpecsOfResults& out_specs);

}  // namespace detail

namespace jax {

struct ShardMapOptions {
  NamedSharding mesh;  // from make_sharding(mesh, {}): the mesh and its devices
  std::vector<PartitionSpec> in_specs;
  std::vector<PartitionSpec> out_specs;
  AxisList axis_names = {};  // the axes that the function is mapped over; empty: all
  bool check_vma = true;
};

// Maps a function of arrays over the devices of a mesh: it receives one device's parts, and communicates by the
// collectives of lax.
std::function<Arrays(const Arrays&)> shard_map(std::function<Arrays(const Arrays&)> function, ShardMapOptions options);

}  // namespace jax
}  // namespace capibara
