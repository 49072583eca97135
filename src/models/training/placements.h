// Placement of a trainer's parameters, optimizer state and batches on a mesh.
#pragma once

#include <capibara/jit.h>
#include <capibara/training/trainer.h>

#include <memory>

namespace capibara::training {

class TrainingPlacement {
 public:
  // Null if the config's mesh has one device. ValueError if the mesh does not fit the model, the batch or the
  // available devices, and for an axis without effect.
  static std::shared_ptr<const TrainingPlacement> of(const AnyModel& model, const TrainerConfig& config);

  const ShardingTable& table() const { return table_; }
  const NamedSharding& devices() const { return devices_; }

  // Sets the context mesh, which layers see while they are traced.
  jax::Scope scope() const;

  // Values, placed.
  Parameters placed(const Parameters& parameters) const;
  TrainState placed(const TrainState& state) const;
  Arrays placed_batch(const char* operation, const Arrays& batch) const;
  // Replicated on every device, so that each process can read them.
  TrainState gathered(const TrainState& state) const;

  // Values of a program being traced, constrained to the same placements.
  Parameters constrained(const Parameters& parameters) const;
  TrainState constrained(const TrainState& state) const;
  Arrays constrained_parts(const Arrays& parts) const;  // of a batch, [parts, examples, ...]

  // The loss: a pipeline if the mesh has stages.
  Array loss(const AnyModel& model, const TrainerConfig& config, const Parameters& parameters,
             const Arrays& batch) const;
  // ValueError if the mesh splits sequences but no part of the loss is computed over that axis.
  void require_sequence(const AnyModel& model, const Parameters& parameters, const Arrays& batch) const;

  MeshBytes planned(const TrainState& state) const;

 private:
  TrainingPlacement(const AnyModel& model, const TrainerConfig& config);

  NamedSharding at(const PartitionSpec& spec) const;
  NamedSharding at(const std::string& parameter) const { return at(table_.at(parameter).spec); }
  // For each leaf of the optimizer state, the parameter that it belongs to, by shape and order; -1: none.
  std::vector<std::vector<int>> owners(const TrainState& state) const;
  template <class Place>
  TrainState mapped(const TrainState& state, Place place) const;

  TrainingMesh mesh_;
  NamedSharding devices_;
  ShardingTable table_;
  AxisList batch_axes_;
  int64_t batch_parts_ = 1;
};

// The bytes of these arrays on one device, the maximum over devices.
int64_t bytes_held(const Arrays& arrays);

}  // namespace capibara::training
