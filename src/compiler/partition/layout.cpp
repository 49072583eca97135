// Layouts: conversions from and to specifications, and to axes of factors.
#include "compiler/partition/layout.h"

#include <algorithm>

#include "core/sharding/mesh_attr.h"

namespace capibara::sharding {

int64_t parts_of(const Mesh& mesh, const Axes& axes) {
  int64_t parts = 1;
  for (const int axis : axes) parts *= mesh.axis_sizes[static_cast<std::size_t>(axis)];
  return parts;
}

int64_t parts_of(const Mesh& mesh, const Layout& layout) {
  int64_t parts = 1;
  for (const Axes& axes : layout) parts *= parts_of(mesh, axes);
  return parts;
}

Shape local_shape(const Mesh& mesh, Shape shape, const Layout& layout) {
  for (std::size_t dim = 0; dim < layout.size(); ++dim) shape[dim] /= parts_of(mesh, layout[dim]);
  return shape;
}

ArrayType part_type(const Mesh& mesh, const ArrayType& type, const Layout& layout) {
  ArrayType part = type.with_shape(local_shape(mesh, type.shape, layout));
  part.sharding = {};
  return part;
}

bool divides(const Mesh& mesh, const Shape& shape, const Layout& layout) {
  for (std::size_t dim = 0; dim < layout.size(); ++dim) {
    if (!layout[dim].empty() && (shape[dim] == 0 || shape[dim] % parts_of(mesh, layout[dim]) != 0)) return false;
  }
  return true;
}

AxisList names_of(const Mesh& mesh, const Axes& axes) {
  AxisList names;
  for (const int axis : axes) names.push_back(mesh.axis_names[static_cast<std::size_t>(axis)]);
  return names;
}

bool contains(const Axes& axes, int axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }

bool is_prefix(const Axes& prefix, const Axes& axes) {
  return prefix.size() <= axes.size() && std::equal(prefix.begin(), prefix.end(), axes.begin());
}

Axes used_axes(const Layout& layout) {
  Axes used;
  for (const Axes& axes : layout) used.insert(used.end(), axes.begin(), axes.end());
  return used;
}

std::optional<Layout> layout_of(const Mesh& mesh, const PartitionSpec& spec, std::size_t rank) {
  Layout layout(rank);
  for (std::size_t dim = 0; dim < spec.dims.size() && dim < rank; ++dim) {
    for (const std::string& name : spec.dims[dim]) {
      const auto it = std::find(mesh.axis_names.begin(), mesh.axis_names.end(), name);
      if (it == mesh.axis_names.end()) return std::nullopt;
      layout[dim].push_back(static_cast<int>(it - mesh.axis_names.begin()));
    }
  }
  return layout;
}

PartitionSpec spec_of(const Mesh& mesh, const Layout& layout) {
  PartitionSpec spec;
  for (const Axes& axes : layout) spec.dims.push_back(names_of(mesh, axes));
  while (!spec.dims.empty() && spec.dims.back().empty()) spec.dims.pop_back();
  return spec;
}

std::string layout_text(const Mesh& mesh, const Layout& layout) { return spec_text(spec_of(mesh, layout)); }

Projection projected(const Mesh& mesh, const Factors& factors, const ValueFactors& value, const Layout& layout) {
  const std::size_t count = factors.factors.size();
  Projection out{std::vector<Axes>(count), std::vector<bool>(count), std::vector<bool>(count)};
  for (std::size_t dim = 0; dim < value.size(); ++dim) {
    std::size_t next = 0;
    const Axes none, &axes = layout.empty() ? none : layout[dim];
    for (const int id : value[dim]) {
      const auto f = static_cast<std::size_t>(id);
      out.present[f] = true;
      int64_t rest = factors.factors[f].size;
      while (next < axes.size() && rest > 1 && rest % parts_of(mesh, Axes{axes[next]}) == 0) {
        rest /= parts_of(mesh, Axes{axes[next]});
        out.axes[f].push_back(axes[next++]);
      }
      if (rest > 1) break;
    }
    for (const int id : value[dim]) {
      out.present[static_cast<std::size_t>(id)] = true;
      if (next < axes.size()) out.overflow[static_cast<std::size_t>(id)] = true;
    }
  }
  return out;
}

std::optional<Layout> layout_from(const Mesh& mesh, const Factors& factors, const ValueFactors& value,
                                  const std::vector<Axes>& axes) {
  Layout layout(value.size());
  for (std::size_t dim = 0; dim < value.size(); ++dim) {
    bool full = true;
    for (const int id : value[dim]) {
      const auto f = static_cast<std::size_t>(id);
      if (axes[f].empty()) {
        full = full && factors.factors[f].size == 1;
        continue;
      }
      if (!full) return std::nullopt;
      layout[dim].insert(layout[dim].end(), axes[f].begin(), axes[f].end());
      full = parts_of(mesh, axes[f]) == factors.factors[f].size;
    }
  }
  return layout;
}

}  // namespace capibara::sharding
