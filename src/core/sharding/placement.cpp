// Placements: which part of an array a device holds, and their texts.
#include <capibara/placement.h>

#include <algorithm>

#include "core/array/format.h"
#include "core/array/hash.h"
#include "core/sharding/mesh_attr.h"
#include "core/sharding/placed_memory.h"

namespace capibara {

namespace {

int64_t axis_size(const Mesh& mesh, const std::string& name) {
  if (mesh.has(name)) return mesh.axis_size(name);
  throw ValueError(concat("Resource axis: ", name, " is not found in ", mesh_text(mesh)));
}

const char* type_name(AxisType type) {
  return type == AxisType::Auto ? "Auto" : type == AxisType::Explicit ? "Explicit" : "Manual";
}

std::string set_text(const AxisList& axes) {
  std::string text = "{";
  for (std::size_t i = 0; i < axes.size(); ++i) text += concat(i ? ", '" : "'", axes[i], "'");
  return text + "}";
}

// The coordinate of a position of the mesh along one axis.
int64_t coordinate(const Mesh& mesh, std::size_t position, const std::string& name) {
  auto rest = static_cast<int64_t>(position);
  for (std::size_t i = mesh.axis_names.size(); i-- > 0;) {
    if (mesh.axis_names[i] == name) return rest % mesh.axis_sizes[i];
    rest /= mesh.axis_sizes[i];
  }
  throw ValueError(concat("Resource axis: ", name, " is not found in ", mesh_text(mesh)));
}

}  // namespace

int64_t NamedSharding::parts(std::size_t dim) const {
  int64_t count = 1;
  if (dim < spec.dims.size()) {
    for (const std::string& axis : spec.dims[dim]) count *= axis_size(mesh, axis);
  }
  return count;
}

bool NamedSharding::replicated() const {
  for (std::size_t dim = 0; dim < spec.dims.size(); ++dim) {
    if (parts(dim) != 1) return false;
  }
  return true;
}

Shape NamedSharding::shard_shape(const Shape& shape) const {
  if (spec.dims.size() > shape.size()) {
    throw ValueError(concat("Sharding ", to_string(*this), " is only valid for values of rank at least ",
                            spec.dims.size(), ", but was applied to a value of rank ", shape.size()));
  }
  Shape part = shape;
  for (std::size_t dim = 0; dim < spec.dims.size(); ++dim) {
    const int64_t count = parts(dim);
    if (shape[dim] % count != 0) {
      std::string factors;
      for (std::size_t i = 0; i < shape.size(); ++i)
        factors += concat(i == 0 ? "" : ", ", i < spec.dims.size() ? parts(i) : 1);
      throw ValueError(concat("Sharding ", to_string(*this), " implies that array axis ", dim, " is partitioned ",
                              count, " times, but the dimension size is ", shape[dim],
                              " (full shape: ", shape_tuple(shape), ", per-dimension tiling factors: [", factors,
                              "] should evenly divide the shape)"));
    }
    part[dim] /= count;
  }
  return part;
}

Shape NamedSharding::shard_offset(const Shape& shape, std::size_t position) const {
  const Shape part = shard_shape(shape);
  Shape offset(shape.size(), 0);
  for (std::size_t dim = 0; dim < spec.dims.size(); ++dim) {
    int64_t index = 0;
    for (const std::string& axis : spec.dims[dim])
      index = index * axis_size(mesh, axis) + coordinate(mesh, position, axis);
    offset[dim] = index * part[dim];
  }
  return offset;
}

std::string mesh_text(const Mesh& mesh) {
  std::string text = "Mesh(", types;
  for (std::size_t i = 0; i < mesh.axis_names.size(); ++i) {
    text += concat("'", mesh.axis_names[i], "': ", mesh.axis_sizes[i], ", ");
    types += concat(i ? ", " : "", type_name(mesh.axis_type(i)));
  }
  return concat(text, "axis_types=(", types, mesh.axis_names.size() == 1 ? ",))" : "))");
}

std::string spec_text(const PartitionSpec& spec) {
  std::vector<std::string> entries;
  for (const AxisList& axes : spec.dims) {
    std::string entry = axes.empty() ? "None" : concat("'", axes[0], "'");
    for (std::size_t i = 1; i < axes.size(); ++i) entry += concat(", '", axes[i], "'");
    entries.push_back(axes.size() > 1 ? concat("(", entry, ")") : entry);
  }
  if (!spec.unreduced.empty()) entries.push_back("unreduced=" + set_text(spec.unreduced));
  if (!spec.reduced.empty()) entries.push_back("reduced=" + set_text(spec.reduced));
  std::string text = "P(";
  for (std::size_t i = 0; i < entries.size(); ++i) text += concat(i ? ", " : "", entries[i]);
  return text + (entries.size() == 1 && spec.dims.size() == 1 ? ",)" : ")");
}

std::string spec_text(const NamedSharding& placement) { return spec_text(placement.spec); }

std::string to_string(const NamedSharding& placement) {
  const std::string kind = placement.memory_kind.empty() ? "device" : placement.memory_kind;
  if (placement.mesh.axis_names.empty()) {
    return concat("SingleDeviceSharding(device=", placement.platform, ":",
                  placement.devices.empty() ? -1 : placement.devices[0], ", memory_kind=", kind, ")");
  }
  return concat("NamedSharding(mesh=", mesh_text(placement.mesh), ", spec=", spec_text(placement),
                ", memory_kind=", kind, ")");
}

std::string shardy_text(const PartitionSpec& spec, std::size_t rank, const std::vector<int64_t>& unconstrained) {
  std::string text = "[";
  for (std::size_t dim = 0; dim < rank; ++dim) {
    text += dim ? ", {" : "{";
    std::string axes;
    if (dim < spec.dims.size()) {
      for (const std::string& axis : spec.dims[dim]) axes += concat(axes.empty() ? "" : ", ", "\"", axis, "\"");
    }
    if (std::find(unconstrained.begin(), unconstrained.end(), static_cast<int64_t>(dim)) != unconstrained.end()) {
      axes += axes.empty() ? "?" : ", ?";
    }
    text += axes + "}";
  }
  return text + "]";
}

bool PlacementAttr::equals(const Opaque& other) const {
  const auto* same = dynamic_cast<const PlacementAttr*>(&other);
  return same && *placement == *same->placement && border == same->border;
}

std::size_t PlacementAttr::hash() const {
  Hasher hasher;
  const std::string text = to_string(*placement);
  hasher.bytes(text.data(), text.size());
  for (int device : placement->devices) hasher.mix(static_cast<std::size_t>(device));
  hasher.mix(static_cast<std::size_t>(border));
  return hasher.value();
}

std::string PlacementAttr::print() const { return to_string(*placement); }

}  // namespace capibara
