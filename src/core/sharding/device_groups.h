// Devices of a mesh by number: which of them exchange values along axes, and which axes a list of numbers means.
#pragma once

#include <capibara/attributes.h>
#include <capibara/sharding.h>

#include <optional>

namespace capibara {

using DeviceGroups = std::vector<Ints>;

// How many devices lie between neighbours along an axis, in row-major order of the mesh.
int64_t axis_stride(const Mesh& mesh, const std::string& axis);
int64_t axes_size(const Mesh& mesh, const AxisList& axes);

// The devices, in groups whose members differ along these axes alone: in row-major order of the axes as they are given.
DeviceGroups device_groups(const Mesh& mesh, const AxisList& axes);
// Each of them divided as axis_index_groups say, which number the members of a group.
DeviceGroups device_groups(const Mesh& mesh, const AxisList& axes, const DeviceGroups& index_groups);

// What a list of groups means to a program over the axes `bound`: the axes along which members differ, and how the
// positions along them are divided (none: all are one group). Nothing where other axes change what a group is.
struct GroupsAlongAxes {
  AxisList axes;
  DeviceGroups index_groups;
};
std::optional<GroupsAlongAxes> find_axes(const Mesh& mesh, const AxisList& bound, const DeviceGroups& groups);

// Pairs (from, to) of devices, as axes and pairs of positions along them.
struct PairsAlongAxes {
  AxisList axes;
  std::vector<std::pair<int64_t, int64_t>> pairs;
};
std::optional<PairsAlongAxes> find_axes(const Mesh& mesh, const AxisList& bound,
                                        const std::vector<std::pair<int64_t, int64_t>>& pairs);

}  // namespace capibara
