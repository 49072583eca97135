// Meshes, partition specifications and the shardings of types.
#include <capibara/sharding.h>

#include <algorithm>
#include <atomic>

#include <capibara/error.h>

namespace capibara {

namespace {

std::atomic<bool> any_explicit{false};

AxisList in_mesh_order(const Mesh& mesh, AxisList axes) {
  auto position = [&](const std::string& axis) {
    return std::find(mesh.axis_names.begin(), mesh.axis_names.end(), axis);
  };
  std::sort(axes.begin(), axes.end(),
            [&](const std::string& a, const std::string& b) { return position(a) < position(b); });
  return axes;
}

// V:x or V:(x,y).
std::string marked(const char* mark, const AxisList& axes) {
  std::string text = concat(mark, ":", axes.size() == 1 ? "" : "(");
  for (std::size_t i = 0; i < axes.size(); ++i) text += concat(i ? "," : "", axes[i]);
  return axes.size() == 1 ? text : text + ")";
}

}  // namespace

int64_t Mesh::size() const {
  int64_t product = 1;
  for (int64_t size : axis_sizes) product *= size;
  return product;
}

bool Mesh::has(const std::string& axis) const {
  return std::find(axis_names.begin(), axis_names.end(), axis) != axis_names.end();
}

int64_t Mesh::axis_size(const std::string& axis) const {
  for (std::size_t i = 0; i < axis_names.size(); ++i) {
    if (axis_names[i] == axis) return axis_sizes[i];
  }
  std::string known;
  for (const std::string& name : axis_names) known += concat(known.empty() ? "'" : ", '", name, "'");
  throw ValueError(concat("Resource axis: ", axis, " is not found in a mesh with axes (", known, ")"));
}

AxisType Mesh::type_of(const std::string& axis) const {
  for (std::size_t i = 0; i < axis_names.size(); ++i) {
    if (axis_names[i] == axis) return axis_type(i);
  }
  axis_size(axis);  // raises
  return AxisType::Auto;
}

bool Mesh::any_is(AxisType type) const {
  for (std::size_t i = 0; i < axis_names.size(); ++i) {
    if (axis_type(i) == type) return true;
  }
  return false;
}

bool operator==(const Mesh& a, const Mesh& b) {
  if (a.axis_names != b.axis_names || a.axis_sizes != b.axis_sizes) return false;
  for (std::size_t i = 0; i < a.axis_names.size(); ++i) {
    if (a.axis_type(i) != b.axis_type(i)) return false;
  }
  return true;
}

Sharding::Sharding(Mesh mesh, PartitionSpec spec)
    : named_(std::make_shared<const Named>(Named{std::move(mesh), std::move(spec), {}, false})) {}

Sharding Sharding::explicit_over(Mesh mesh, PartitionSpec spec, AxisList varying) {
  Sharding sharding;
  spec.unreduced = in_mesh_order(mesh, std::move(spec.unreduced));
  spec.reduced = in_mesh_order(mesh, std::move(spec.reduced));
  varying = in_mesh_order(mesh, std::move(varying));
  sharding.named_ = std::make_shared<const Named>(Named{std::move(mesh), std::move(spec), std::move(varying), true});
  any_explicit.store(true, std::memory_order_relaxed);
  return sharding;
}

Sharding Sharding::varying_over(Mesh mesh, AxisList axes) {
  Sharding sharding;
  if (axes.empty()) return sharding;
  axes = in_mesh_order(mesh, std::move(axes));
  sharding.named_ = std::make_shared<const Named>(Named{std::move(mesh), {}, std::move(axes), false});
  return sharding;
}

const Mesh& Sharding::mesh() const { return named_->mesh; }
const PartitionSpec& Sharding::spec() const { return named_->spec; }

const AxisList& Sharding::varying() const {
  static const AxisList none;
  return named_ ? named_->varying : none;
}

bool operator==(const Sharding& a, const Sharding& b) {
  if (a.named_ == b.named_) return true;
  if (!a.named_ || !b.named_) return false;
  if (a.is_explicit() != b.is_explicit() || (a.is_explicit() && !(a.mesh() == b.mesh()))) return false;
  return a.varying() == b.varying() && a.spec() == b.spec() && a.mesh().axis_names == b.mesh().axis_names &&
         a.mesh().axis_sizes == b.mesh().axis_sizes;
}

std::string varying_text(const Sharding& sharding) {
  if (sharding.single_device()) return {};
  std::string text;
  auto add = [&](const char* mark, const AxisList& axes) {
    if (!axes.empty()) text += concat(text.empty() ? "" : ", ", marked(mark, axes));
  };
  add("V", sharding.varying());
  if (sharding.is_explicit()) {
    add("U", sharding.spec().unreduced);
    add("R", sharding.spec().reduced);
  }
  return text.empty() ? text : concat("{", text, "}");
}

std::string split_text(const Sharding& sharding, std::size_t dim) {
  if (!sharding.is_explicit() || dim >= sharding.spec().dims.size()) return {};
  const AxisList& axes = sharding.spec().dims[dim];
  if (axes.empty()) return {};
  if (axes.size() == 1) return "@" + axes[0];
  std::string text = "@(";
  for (std::size_t i = 0; i < axes.size(); ++i) text += concat(i ? "," : "", axes[i]);
  return text + ")";
}

bool explicit_types_exist() { return any_explicit.load(std::memory_order_relaxed); }

}  // namespace capibara
