// shard_map: a function that every device of a mesh runs on its part of the arguments.
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
  bool abstract = false;  // whether the mesh is that of the surrounding shard_map
  std::vector<PartitionSpec> in_specs;
  AxisList manual;  // the axes that become manual, in the order of the mesh
  bool check_vma = true;
  std::string name = "shard_map";
};
// The specifications of results of these types; may raise where they do not fit.
using SpecsOfResults = std::function<std::vector<PartitionSpec>(const std::vector<ArrayType>&)>;
Arrays shard_map_flat(const std::function<Arrays(std::span<const Array>)>& function, std::span<const Array> inputs,
                      const ShardMapCall& call, const SpecsOfResults& out_specs);

}  // namespace detail

namespace jax {

struct ShardMapOptions {
  NamedSharding mesh;  // of make_sharding(mesh, {}): the mesh and its devices
  std::vector<PartitionSpec> in_specs;
  std::vector<PartitionSpec> out_specs;
  AxisList axis_names = {};  // the axes that the function is mapped over; empty: all
  bool check_vma = true;
};

// Maps a function of arrays over the devices of a mesh: it sees one device's parts, and speaks to the others by the
// collectives of lax.
std::function<Arrays(const Arrays&)> shard_map(std::function<Arrays(const Arrays&)> function, ShardMapOptions options);

}  // namespace jax
}  // namespace capibara
