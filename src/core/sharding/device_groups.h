// Groups of devices of a mesh by number: those that exchange values along axes, and the axes that listed numbers mean.
#pragma once

#include <capibara/attributes.h>
#include <capibara/sharding.h>

#include <optional>

namespace capibara {

using DeviceGroups = std::vector<Ints>;

// The stride of an axis, in devices, in row-major order of the mesh.
int64_t axis_stride(const Mesh& mesh, const std::string& axis);
int64_t axes_size(const Mesh& mesh, const AxisList& axes);

// The devices, in groups whose members differ along these axes alone: in row-major order of the axes as given.
DeviceGroups device_groups(const Mesh& mesh, const AxisList& axes);
// Each group split by axis_index_groups, which number the members of a group.
DeviceGroups device_groups(const Mesh& mesh, const AxisList& axes, const DeviceGroups& index_groups);

// A list of groups in terms of the axes `bound` of a program: the axes along which members differ, and how the
// positions along them are grouped (none: all are one group). Empty if other axes change what a group is.
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
