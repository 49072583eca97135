// Training over a mesh: what its axes mean, which of them split which dimensions of parameters, and how many bytes that
// leaves on each device.
#pragma once

#include <capibara/model.h>
#include <capibara/placement.h>

#include <map>
#include <string>
#include <vector>

namespace capibara::training {

// ---- rules -------------------------------------------------------------------------------------------------------

// One parameter on a mesh.
struct ParameterSharding {
  std::string name;
  ArrayType type;
  PartitionSpec spec;  // an entry for each dimension
  int64_t bytes = 0;   // on each device
  std::string why;     // which rule chose it, and which dimensions stay whole because their axis does not divide them
};

// All parameters of a model on a mesh.
struct ShardingTable {
  Mesh mesh;
  std::vector<ParameterSharding> parameters;

  int64_t bytes() const;     // on each device
  std::string text() const;  // a line for each parameter
  // Raises ValueError for a parameter that is not in it.
  const ParameterSharding& at(const std::string& name) const;
  // Whether an axis splits any parameter.
  bool uses(const std::string& axis) const;
};

// Parameters whose name has `pattern` in it, a regular expression, split their last dimensions over the axes of
// `dimensions`; an empty entry is not split. With `largest` the largest dimension that this axis divides is split.
// Axes that the mesh does not have, that have one device, or that do not divide the dimension are left out.
struct ShardingRule {
  std::string pattern;
  std::vector<std::string> dimensions;
  std::string largest;
  std::string why;
};

// "fsdp", "megatron" and "expert": tables of rules over meshes with axes "data", "model" and "expert", whose first rule
// that matches counts. ValueError for other names.
const std::vector<ShardingRule>& sharding_strategy(const std::string& name);
// Their names.
std::vector<std::string> sharding_strategies();

// How rules split parameters of these types; whole where none matches.
ShardingTable shard_by_rules(const ParameterTypes& types, const Mesh& mesh, const std::vector<ShardingRule>& rules);

// Dimensions with a logical name, as a model gives them, split over mesh axes: the first of `axes` that the mesh has,
// that divides the dimension and that splits no other one of the parameter.
struct LogicalRule {
  std::string logical;
  std::vector<std::string> axes;
};

// Rules that fit any model.
struct MeshRules {
  std::vector<LogicalRule> logical = {
      {"vocab", {"tensor"}}, {"heads", {"tensor"}}, {"mlp", {"tensor"}}, {"expert", {"expert"}},
      {"mesh0", {"fsdp"}},   {"mesh1", {"tensor"}}};  // of named models: the axes of the mesh that they were compiled
                                                      // for
  // After them, each of these axes splits the largest part of a dimension that it divides.
  std::vector<std::string> largest = {"fsdp"};
};

// How the logical axes of a model split its parameters.
ShardingTable shard_by_axes(const AnyModel& model, const Mesh& mesh, const MeshRules& rules = {});

// ---- meshes for training -----------------------------------------------------------------------------------------

// Devices along each axis; 1: the mesh does not have it.
struct TrainingMesh {
  int64_t data = 1;          // splits batches
  int64_t fsdp = 1;          // splits batches, and every parameter with what the optimizer keeps of it
  int64_t expert = 1;        // splits experts
  int64_t sequence = 1;      // splits sequences: ring attention
  int64_t stages = 1;        // splits layers: a pipeline
  int64_t tensor = 1;        // splits heads, hidden units and the vocabulary
  int64_t microbatches = 0;  // of the pipeline; 0: twice as many as stages, where that divides the batch

  int64_t devices() const { return data * fsdp * expert * sequence * stages * tensor; }
  friend bool operator==(const TrainingMesh&, const TrainingMesh&) = default;
};
// Axes as "data=2,fsdp=4". ValueError for other words and for sizes below 1.
TrainingMesh training_mesh_from_text(const std::string& text);
// The same text of a mesh, without the axes of one device.
std::string to_string(const TrainingMesh& mesh);
// The mesh of the axes that have several devices, all Auto.
Mesh make_mesh(const TrainingMesh& mesh);

// ---- pipeline ----------------------------------------------------------------------------------------------------

struct PipelineOptions {
  std::string axis = "stages";  // of the mesh
  int64_t microbatches = 0;     // 0: twice as many as stages, where that divides the batch, else as many
};

// The loss of a model whose layers are in equal groups on the devices along an axis. The batch passes them in
// microbatches, each device working on another one (GPipe); start and finish run on the whole batch. Parts of the carry
// that have no batch dimension are averaged over the microbatches. The layers must be computed by one program with
// other parameters, whose number the axis divides; ValueError that says which is not.
Array pipeline_loss(const AnyModel& model, const Parameters& parameters, const Arrays& batch,
                    const NamedSharding& devices, const PipelineOptions& options = {});

}  // namespace capibara::training
