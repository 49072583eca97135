// shard_map as seen by its rules: the mesh, the axes it makes manual, and its specifications.
#pragma once

#include "core/sharding/mesh_attr.h"
#include "lax/control/control.h"
#include "program/trace/mesh_trace.h"

namespace capibara {

using Specs = std::vector<PartitionSpec>;

// The attributes of one shard_map.
class ShardMapView {
 public:
  explicit ShardMapView(const Attrs& attrs);

  const Program& program() const { return program_; }
  const NamedSharding& devices() const { return mesh_->devices; }
  const Mesh& mesh() const { return mesh_->devices.mesh; }
  const Specs& in_specs() const { return in_->specs; }
  const Specs& out_specs() const { return out_->specs; }
  const AxisList& manual() const { return manual_; }  // in the order of the mesh
  bool checked() const { return checked_; }

  MeshScope scope() const { return MeshScope(mesh(), manual_, checked_); }
  // The same map of another program.
  Attrs with(const Program& program, Specs in_specs, Specs out_specs) const;
  Arrays bind(const Program& program, std::span<const Array> inputs, Specs in_specs, Specs out_specs) const;
  // The manual axes that a specification does not name.
  AxisList unnamed(const PartitionSpec& spec) const;
  int64_t size(const AxisList& axes) const;

 private:
  Attrs attrs_;  // keeps the program alive
  const Program& program_;
  std::shared_ptr<const MeshAttr> mesh_;
  std::shared_ptr<const SpecsAttr> in_, out_;
  AxisList manual_;
  bool checked_;
};

Specs where(const Specs& specs, const std::vector<bool>& mask);
Specs joined(Specs a, const Specs& b);

// The type of one device's part, and of the whole array.
ArrayType local_type(const ArrayType& type, const PartitionSpec& spec, const ShardMapView& map);
ArrayType global_type(const ArrayType& type, const PartitionSpec& spec, const ShardMapView& map);

PartialEvalSplit partial_eval_shard_map(const PartialEvalArgs& args);
Arrays transpose_shard_map(const TransposeArgs& args);
// All devices as lanes of one program: the map of each manual axis is a vmap over it.
Arrays run_in_lanes(std::span<const Array> inputs, const Attrs& attrs);

}  // namespace capibara
