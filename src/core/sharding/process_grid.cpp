// Finds the block of a mesh that each process holds, and the processes along each axis.
#include "core/sharding/process_grid.h"

#include <algorithm>
#include <map>
#include <set>

#include <capibara/config.h>

#include "core/processes/job.h"

namespace capibara {

namespace {

Shape coordinates(const Mesh& mesh, std::size_t position) {
  Shape index(mesh.axis_sizes.size());
  auto rest = static_cast<int64_t>(position);
  for (std::size_t axis = index.size(); axis-- > 0;) {
    index[axis] = rest % mesh.axis_sizes[axis];
    rest /= mesh.axis_sizes[axis];
  }
  return index;
}

[[noreturn]] void refuse(const std::string& what) {
  throw ValueError(
      concat("shard_map: the devices of a process must be a block of the mesh, the same in each process, but ", what,
             "\nHint: jax.make_mesh and mesh_utils.create_device_mesh order devices so"));
}

// The size of the block of devices that a process holds along each axis.
Shape block_of(const NamedSharding& placed, int process) {
  const std::size_t rank = placed.mesh.axis_sizes.size();
  Shape low = placed.mesh.axis_sizes, high(rank, -1);
  int64_t count = 0, volume = 1;
  for (std::size_t position = 0; position < placed.devices.size(); ++position) {
    if (process_of_device(placed.devices[position]) != process) continue;
    ++count;
    const Shape at = coordinates(placed.mesh, position);
    for (std::size_t axis = 0; axis < rank; ++axis) {
      low[axis] = std::min(low[axis], at[axis]);
      high[axis] = std::max(high[axis], at[axis]);
    }
  }
  if (count == 0) refuse(concat("process ", process, " has none of its devices"));
  Shape block(rank);
  for (std::size_t axis = 0; axis < rank; ++axis) volume *= block[axis] = high[axis] - low[axis] + 1;
  if (volume != count) refuse(concat("process ", process, " has ", count, " devices that are not next to each other"));
  return block;
}

Shape divided(Shape index, const Shape& block) {
  for (std::size_t axis = 0; axis < index.size(); ++axis) index[axis] /= block[axis];
  return index;
}

// The process of each block, by its position in the grid of blocks.
std::map<Shape, int> processes_of(const NamedSharding& placed, const Shape& block) {
  std::map<Shape, int> grid;
  for (std::size_t position = 0; position < placed.devices.size(); ++position) {
    const int process = process_of_device(placed.devices[position]);
    const auto [it, added] = grid.try_emplace(divided(coordinates(placed.mesh, position), block), process);
    if (it->second != process) refuse(concat("processes ", it->second, " and ", process, " share one"));
  }
  return grid;
}

}  // namespace

int process_of_device(int device) {
  const int own = std::max(1, config().num_cpu_devices);
  return device / own;
}

bool is_addressable(const NamedSharding& placement) {
  if (processes::exchanging().count == 1) return true;
  const int own = processes::exchanging().own;
  return std::all_of(placement.devices.begin(), placement.devices.end(),
                     [&](int device) { return process_of_device(device) == own; });
}

bool holds_whole(const NamedSharding& placement, int process) {
  Shape parts;
  for (std::size_t dim = 0; dim < placement.spec.dims.size(); ++dim) parts.push_back(placement.parts(dim));
  std::set<Shape> all, own;
  for (std::size_t position = 0; position < placement.devices.size(); ++position) {
    const Shape begin = placement.shard_offset(parts, position);
    all.insert(begin);
    if (process_of_device(placement.devices[position]) == process) own.insert(begin);
  }
  return own.size() == all.size();
}

bool is_readable(const NamedSharding& placement) {
  if (placement.platform != "cpu" || is_addressable(placement)) return true;
  return holds_whole(placement, processes::exchanging().own);
}

ProcessGrid::ProcessGrid(const NamedSharding& devices) {
  const Mesh& mesh = devices.mesh;
  for (std::size_t axis = 0; axis < mesh.axis_names.size(); ++axis)
    axes_.push_back({mesh.axis_names[axis], mesh.axis_sizes[axis], 0, {0}});
  if (devices.platform != "cpu" || is_addressable(devices)) return;
  const int own = processes::exchanging().own;
  const Shape block = block_of(devices, own);
  const std::map<Shape, int> grid = processes_of(devices, block);
  const auto here = std::find_if(grid.begin(), grid.end(), [&](const auto& entry) { return entry.second == own; });
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    axes_[axis].block = block[axis];
    axes_[axis].first = here->first[axis] * block[axis];
    axes_[axis].group.clear();
    Shape at = here->first;
    for (at[axis] = 0; at[axis] * block[axis] < mesh.axis_sizes[axis]; ++at[axis])
      axes_[axis].group.push_back(grid.at(at));
  }
}

bool ProcessGrid::spans() const {
  return std::any_of(axes_.begin(), axes_.end(), [](const ProcessAxis& axis) { return axis.crosses(); });
}

const ProcessAxis& ProcessGrid::axis(const std::string& name) const {
  const auto it = std::find_if(axes_.begin(), axes_.end(), [&](const ProcessAxis& axis) { return axis.name == name; });
  if (it == axes_.end()) throw InternalError(concat("process_grid: no axis '", name, "'"));
  return *it;
}

std::string ProcessGrid::text() const {
  std::string text;
  for (const ProcessAxis& axis : axes_) {
    text += concat(axis.name, ":", axis.first, "+", axis.block, " of");
    for (const int process : axis.group) text += concat(" ", process);
    text += ";";
  }
  return text;
}

}  // namespace capibara
