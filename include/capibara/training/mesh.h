// Training over a mesh: the meaning of its axes, how they split the dimensions of parameters, and the bytes that remain
// on each device.
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
  PartitionSpec spec;  // one entry per dimension
  int64_t bytes = 0;   // per device
  std::string why;     // the rule that chose it, and the dimensions left whole because their axis does not divide them
};

// All parameters of a model on a mesh.
struct ShardingTable {
  Mesh mesh;
  std::vector<ParameterSharding> parameters;

  int64_t bytes() const;     // per device
  std::string text() const;  // one line per parameter
  // Raises ValueError for an unknown parameter.
  const ParameterSharding& at(const std::string& name) const;
  // True if an axis splits any parameter.
  bool uses(const std::string& axis) const;
};

// Parameters whose name contains a match of the regular expression `pattern` split their last dimensions over
// the axes of `dimensions`; an empty entry is not split. `largest` is an axis that splits the largest dimension it
// divides. Axes that are not in the mesh, have one device, or do not divide the dimension are skipped.
struct ShardingRule {
  std::string pattern;
  std::vector<std::string> dimensions;
  std::string largest;
  std::string why;
};

// "fsdp", "megatron" and "expert": tables of rules over meshes with axes "data", "model" and "expert", of which the
// first matching rule applies. ValueError for other names.
const std::vector<ShardingRule>& sharding_strategy(const std::string& name);
// The names of the strategies.
std::vector<std::string> sharding_strategies();

// How rules split parameters of these types; whole if none matches.
ShardingTable shard_by_rules(const ParameterTypes& types, const Mesh& mesh, const std::vector<ShardingRule>& rules);

// Dimensions with a logical name, given by the model, split over mesh axes: the first of `axes` that is in the mesh,
// divides the dimension and splits no other dimension of the parameter.
struct LogicalRule {
  std::string logical;
  std::vector<std::string> axes;
};

// Rules that fit any model.
struct MeshRules {
  std::vector<LogicalRule> logical = {
      {"vocab", {"tensor"}}, {"heads", {"tensor"}}, {"mlp", {"tensor"}}, {"expert", {"expert"}},
      {"mesh0", {"fsdp"}},   {"mesh1", {"tensor"}}};  // for named models: the axes of the mesh that they were
                                                      // compiled for
  // Afterwards, each of these axes splits the largest part of a dimension that it divides.
  std::vector<std::string> largest = {"fsdp"};
};

// How the logical axes of a model split its parameters.
ShardingTable shard_by_axes(const AnyModel& model, const Mesh& mesh, const MeshRules& rules = {});

// ---- meshes for training -----------------------------------------------------------------------------------------

// Devices along each axis; 1: the mesh does not have the axis.
struct TrainingMesh {
  int64_t data = 1;          // splits batches
  int64_t fsdp = 1;          // splits batches, and every parameter together with its optimizer state
  int64_t expert = 1;        // splits experts
  int64_t sequence = 1;      // splits sequences: ring attention
  int64_t stages = 1;        // splits layers: a pipeline
  int64_t tensor = 1;        // splits heads, hidden units and the vocabulary
  int64_t microbatches = 0;  // of the pipeline; 0: twice the number of stages, if that divides the batch

  int64_t devices() const { return data * fsdp * expert * sequence * stages * tensor; }
  friend bool operator==(const TrainingMesh&, const TrainingMesh&) = default;
};
// Axes as "data=2,fsdp=4". ValueError for other names and for sizes below 1.
TrainingMesh training_mesh_from_text(const std::string& text);
// A mesh in the same format, without the axes of one device.
std::string to_string(const TrainingMesh& mesh);
// The mesh of the axes that have more than one device, all Auto.
Mesh make_mesh(const TrainingMesh& mesh);

// ---- pipeline ----------------------------------------------------------------------------------------------------

struct PipelineOptions {
  std::string axis = "stages";  // of the mesh
  int64_t microbatches = 0;     // 0: twice the number of stages if that divides the batch, else as many as stages
};

// The loss of a model with equal groups of layers on the devices along an axis. The batch passes through them in
// microbatches, each device working on a different one (GPipe); start and finish run on the whole batch. Parts of the
// carry without a batch dimension are averaged over the microbatches. The layers must be computed by one program with
// different parameters, and the axis must divide their number; otherwise ValueError gives the reason.
Array pipeline_loss(const AnyModel& model, const Parameters& parameters, const Arrays& batch,
                    const NamedSharding& devices, const PipelineOptions& options = {});

}  // namespace capibara::training
