// Mesh axes as traces that bind one name each; operations pass through them.
#include "program/trace/mesh_trace.h"

#include <algorithm>

namespace capibara {

namespace {

class MeshTrace final : public Trace {
 public:
  MeshTrace(std::shared_ptr<Trace> outer, std::shared_ptr<const Mesh> own, std::string axis, int64_t size,
            bool is_checked)
      : mesh(std::move(own)), checked(is_checked), name_(std::move(axis)), size_(size) {
    parent = std::move(outer);
  }
  Arrays bind(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) override {
    TraceScope scope(parent);
    return parent->bind(primitive, inputs, attrs);
  }
  const char* kind() const override { return "shard_map"; }
  std::optional<int64_t> axis_size(const std::string& name) const override {
    return name == name_ ? size_ : Trace::axis_size(name);
  }
  std::string bound_axis() const override { return name_; }

  const std::shared_ptr<const Mesh> mesh;
  const bool checked;

 private:
  std::string name_;
  int64_t size_;
};

// No user's axis has this name: it distinguishes programs traced with varying types from those without.
constexpr const char* check_marker = "{V}";

std::shared_ptr<Trace> bound(const Mesh& mesh, const AxisList& axes, bool checked) {
  const auto own = std::make_shared<const Mesh>(mesh);
  std::shared_ptr<Trace> trace = current_trace();
  for (const std::string& axis : axes)
    trace = std::make_shared<MeshTrace>(trace, own, axis, mesh.axis_size(axis), checked);
  return checked ? std::make_shared<MeshTrace>(trace, own, check_marker, 1, true) : trace;
}

}  // namespace

MeshScope::MeshScope(const Mesh& mesh, const AxisList& axes, bool checked) : scope_(bound(mesh, axes, checked)) {}

namespace {

const MeshTrace* mesh_trace(const std::string& axis) {
  if (evaluating()) return nullptr;
  for (const Trace* trace = current_trace().get(); trace; trace = trace->parent.get()) {
    if (trace->bound_axis() == axis) return dynamic_cast<const MeshTrace*>(trace);
  }
  return nullptr;
}

}  // namespace

const Mesh* checked_mesh(const std::string& axis) {
  const MeshTrace* own = mesh_trace(axis);
  return own && own->checked ? own->mesh.get() : nullptr;
}

bool are_mesh_axes(const AxisList& axes) {
  return std::all_of(axes.begin(), axes.end(), [](const std::string& axis) { return mesh_trace(axis) != nullptr; });
}

}  // namespace capibara
