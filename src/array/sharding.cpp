// Meshes and partition specifications.
#include <capibara/sharding.h>

#include <algorithm>

#include <capibara/error.h>

namespace capibara {

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

bool operator==(const Mesh& a, const Mesh& b) {
  if (a.axis_names != b.axis_names || a.axis_sizes != b.axis_sizes) return false;
  for (std::size_t i = 0; i < a.axis_names.size(); ++i) {
    if (a.axis_type(i) != b.axis_type(i)) return false;
  }
  return true;
}

Sharding::Sharding(Mesh mesh, PartitionSpec spec)
    : named_(std::make_shared<const Named>(Named{std::move(mesh), std::move(spec), {}})) {}

Sharding Sharding::varying_over(Mesh mesh, AxisList axes) {
  Sharding sharding;
  if (axes.empty()) return sharding;
  auto position = [&](const std::string& axis) {
    return std::find(mesh.axis_names.begin(), mesh.axis_names.end(), axis);
  };
  std::sort(axes.begin(), axes.end(),
            [&](const std::string& a, const std::string& b) { return position(a) < position(b); });
  sharding.named_ = std::make_shared<const Named>(Named{std::move(mesh), {}, std::move(axes)});
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
  return a.varying() == b.varying() && a.spec() == b.spec() && a.mesh().axis_names == b.mesh().axis_names &&
         a.mesh().axis_sizes == b.mesh().axis_sizes;
}

std::string varying_text(const Sharding& sharding) {
  const AxisList& axes = sharding.varying();
  if (axes.empty()) return {};
  if (axes.size() == 1) return concat("{V:", axes[0], "}");
  std::string text = "{V:(";
  for (std::size_t i = 0; i < axes.size(); ++i) text += concat(i ? "," : "", axes[i]);
  return text + ")}";
}

}  // namespace capibara
