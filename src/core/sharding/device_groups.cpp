// Groups of devices from axes of a mesh, and axes from groups.
#include "core/sharding/device_groups.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/sharding/explicit.h"

namespace capibara {

namespace {

int64_t coordinate(const Mesh& mesh, int64_t device, const std::string& axis) {
  return device / axis_stride(mesh, axis) % mesh.axis_size(axis);
}

// The position of a device along these axes: row-major in their order.
int64_t position(const Mesh& mesh, int64_t device, const AxisList& axes) {
  int64_t at = 0;
  for (const std::string& axis : axes) at = at * mesh.axis_size(axis) + coordinate(mesh, device, axis);
  return at;
}

AxisList other_axes(const Mesh& mesh, const AxisList& axes) {
  AxisList rest;
  for (const std::string& axis : mesh.axis_names) {
    if (!lists_axis(axes, axis)) rest.push_back(axis);
  }
  return rest;
}

// The axes, in mesh order, along which members of a group differ.
AxisList differing(const Mesh& mesh, const DeviceGroups& groups) {
  AxisList axes;
  for (const std::string& axis : mesh.axis_names) {
    const bool differs = std::any_of(groups.begin(), groups.end(), [&](const Ints& group) {
      return std::any_of(group.begin(), group.end(), [&](int64_t device) {
        return coordinate(mesh, device, axis) != coordinate(mesh, group[0], axis);
      });
    });
    if (differs) axes.push_back(axis);
  }
  return axes;
}

bool are_devices(const Mesh& mesh, const DeviceGroups& groups) {
  for (const Ints& group : groups) {
    for (const int64_t device : group) {
      if (device < 0 || device >= mesh.size()) return false;
    }
  }
  return true;
}

// The groups as positions along the axes, if they are the same for every position along the other axes; in the order
// in which they come.
std::optional<DeviceGroups> along(const Mesh& mesh, const AxisList& axes, const DeviceGroups& groups) {
  const AxisList rest = other_axes(mesh, axes);
  std::map<int64_t, DeviceGroups> by_rest;
  for (const Ints& group : groups) {
    if (group.empty()) continue;
    Ints own;
    for (const int64_t device : group) own.push_back(position(mesh, device, axes));
    by_rest[position(mesh, group[0], rest)].push_back(std::move(own));
  }
  if (by_rest.empty() || static_cast<int64_t>(by_rest.size()) != axes_size(mesh, rest)) return std::nullopt;
  const auto as_set = [](const DeviceGroups& list) { return std::set<Ints>(list.begin(), list.end()); };
  const std::set<Ints> first = as_set(by_rest.begin()->second);
  for (const auto& [at, own] : by_rest) {
    if (as_set(own) != first) return std::nullopt;
  }
  return by_rest.begin()->second;
}

bool is_counting(const Ints& group, int64_t size) {
  if (static_cast<int64_t>(group.size()) != size) return false;
  for (int64_t i = 0; i < size; ++i) {
    if (group[static_cast<std::size_t>(i)] != i) return false;
  }
  return true;
}

}  // namespace

int64_t axis_stride(const Mesh& mesh, const std::string& axis) {
  int64_t stride = 1;
  for (std::size_t i = mesh.axis_names.size(); i-- > 0;) {
    if (mesh.axis_names[i] == axis) return stride;
    stride *= mesh.axis_sizes[i];
  }
  mesh.axis_size(axis);  // raises
  return stride;
}

int64_t axes_size(const Mesh& mesh, const AxisList& axes) {
  int64_t size = 1;
  for (const std::string& axis : axes) size *= mesh.axis_size(axis);
  return size;
}

DeviceGroups device_groups(const Mesh& mesh, const AxisList& axes) {
  const AxisList rest = other_axes(mesh, axes);
  DeviceGroups groups(static_cast<std::size_t>(axes_size(mesh, rest)),
                      Ints(static_cast<std::size_t>(axes_size(mesh, axes))));
  for (int64_t device = 0; device < mesh.size(); ++device) {
    groups[static_cast<std::size_t>(position(mesh, device, rest))]
          [static_cast<std::size_t>(position(mesh, device, axes))] = device;
  }
  return groups;
}

DeviceGroups device_groups(const Mesh& mesh, const AxisList& axes, const DeviceGroups& index_groups) {
  const DeviceGroups whole = device_groups(mesh, axes);
  if (index_groups.empty()) return whole;
  DeviceGroups divided;
  for (const Ints& group : whole) {
    for (const Ints& indices : index_groups) {
      Ints& own = divided.emplace_back();
      for (const int64_t index : indices) own.push_back(group[static_cast<std::size_t>(index)]);
    }
  }
  return divided;
}

std::optional<GroupsAlongAxes> find_axes(const Mesh& mesh, const AxisList& bound, const DeviceGroups& groups) {
  if (!are_devices(mesh, groups)) return std::nullopt;
  AxisList axes = differing(mesh, groups);
  if (!std::all_of(axes.begin(), axes.end(), [&](const std::string& axis) { return lists_axis(bound, axis); }))
    return std::nullopt;
  // All devices along some axes, in any order of these.
  std::sort(axes.begin(), axes.end());
  do {
    const std::optional<DeviceGroups> own = along(mesh, axes, groups);
    if (own && own->size() == 1 && is_counting((*own)[0], axes_size(mesh, axes))) return GroupsAlongAxes{axes, {}};
  } while (std::next_permutation(axes.begin(), axes.end()));
  // Else part of the devices: along the bound axes, the same wherever the other axes are.
  for (const AxisList& wider : {differing(mesh, groups), bound}) {
    AxisList ordered;
    for (const std::string& axis : mesh.axis_names) {
      if (lists_axis(wider, axis)) ordered.push_back(axis);
    }
    if (ordered.empty()) continue;
    if (std::optional<DeviceGroups> own = along(mesh, ordered, groups))
      return GroupsAlongAxes{ordered, std::move(*own)};
  }
  return std::nullopt;
}

std::optional<PairsAlongAxes> find_axes(const Mesh& mesh, const AxisList& bound,
                                        const std::vector<std::pair<int64_t, int64_t>>& pairs) {
  DeviceGroups groups;
  for (const auto& [from, to] : pairs) groups.push_back({from, to});
  if (groups.empty()) return PairsAlongAxes{{bound.empty() ? "" : bound[0]}, {}};
  if (!are_devices(mesh, groups)) return std::nullopt;
  AxisList axes = differing(mesh, groups);
  if (axes.empty() && !bound.empty()) axes = {bound[0]};
  if (!std::all_of(axes.begin(), axes.end(), [&](const std::string& axis) { return lists_axis(bound, axis); }))
    return std::nullopt;
  AxisList ordered;
  for (const std::string& axis : mesh.axis_names) {
    if (lists_axis(bound, axis)) ordered.push_back(axis);
  }
  for (const AxisList& candidate : {axes, ordered}) {
    const std::optional<DeviceGroups> own = along(mesh, candidate, groups);
    if (!own) continue;
    PairsAlongAxes found{candidate, {}};
    for (const Ints& pair : *own) found.pairs.emplace_back(pair[0], pair[1]);
    return found;
  }
  return std::nullopt;
}

}  // namespace capibara
