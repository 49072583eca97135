// The program of one device of a shard_map in the form from which lanes are built.
#pragma once

#include <algorithm>

#include "core/sharding/process_grid.h"
#include "lax/shard_map/shard_map.h"

namespace capibara {

// The axes of one shard_map, and the processes along them.
struct LaneAxes {
  Mesh mesh;
  AxisList manual;
  ProcessGrid grid;

  explicit LaneAxes(const ShardMapView& map) : mesh(map.mesh()), manual(map.manual()), grid(map.devices()) {}

  bool crosses(const std::string& axis) const {
    return std::find(manual.begin(), manual.end(), axis) != manual.end() && grid.axis(axis).crosses();
  }
  bool any_crosses(const jax::lax::AxisNames& names) const {
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return crosses(name); });
  }
  // The number of lanes along a manual axis: the devices of this process.
  int64_t lanes(const std::string& axis) const { return crosses(axis) ? grid.axis(axis).block : mesh.axis_size(axis); }
  int64_t size(const jax::lax::AxisNames& names) const {
    int64_t size = 1;
    for (const std::string& name : names) size *= mesh.axis_size(name);
    return size;
  }
  std::string text() const {
    std::string text = grid.text();
    for (std::size_t i = 0; i < mesh.axis_names.size(); ++i)
      text += concat(mesh.axis_names[i], ":", mesh.axis_sizes[i], " ");
    for (const std::string& axis : manual) text += concat(axis, " ");
    return text;
  }
};

// Without varying types, with each collective over one axis, and with exchanges if an axis crosses processes.
Program local_form(const Program& program, const LaneAxes& axes);

}  // namespace capibara
