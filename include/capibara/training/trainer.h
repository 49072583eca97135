// The trainer: one compiled step with donated state, skipping of bad steps, checkpoints and exact resumption.
#pragma once

#include <capibara/model.h>
#include <capibara/training/data.h>
#include <capibara/training/language_model.h>
#include <capibara/training/mesh.h>
#include <capibara/training/optimizers.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace capibara::training {

struct TrainerConfig {
  std::string folder;  // of checkpoints; empty: none are written
  int64_t steps = 400;
  int64_t batch = 16, length = 128;  // of tokens; other models determine their own batch sizes
  int64_t accumulate = 1;            // batches whose gradients are averaged in one step
  std::string optimizer = "adamw";   // sgd, momentum, adam, adamw, lion, adafactor, muon
  double learning_rate = 3e-3;       // at the end of the warm-up; then a cosine to a tenth
  int64_t warmup = 20;
  double weight_decay = 0.1, max_norm = 1;
  // bfloat16: mixed precision. Parameters stay float32; the floating arrays of a batch are converted too.
  DType compute = DType::float32;
  int64_t checkpoint_every = 100, keep = 2;
  double spike_factor = 3;     // a step whose loss exceeds this many times the average is skipped; 0: never
  int64_t max_bad_steps = 10;  // consecutive bad steps after which a spike is accepted and a NaN is an error
  uint64_t seed = 0;
  // The devices that train together. Parameters and their optimizer state are placed by the rules, batches
  // are split over data x fsdp; an axis without effect is an error. The mesh is not part of a run's settings:
  // checkpoints from one mesh resume on another.
  TrainingMesh mesh = {};
  MeshRules rules = {};
  int64_t num_workers = 1;  // threads that prepare batches of tokens
};

// The complete state that a step updates.
struct TrainState {
  Parameters parameters;
  optimizers::OptimizerState optimizer;
  Array average;  // of the losses of good steps
  Array good;     // int32: good steps
  Array bad;      // int32: bad steps since the last good one
};
CAPIBARA_TREE(TrainState, parameters, optimizer, average, good, bad)

struct StepReport {
  int64_t step = 0;  // counts from 1
  double loss = 0;   // of language models: nats per token
  double norm = 0;   // of the gradients
  bool skipped = false;
  double seconds = 0;       // since the previous step
  bool checkpoint = false;  // true if train() saves this step after on_step returns
};

// Bytes on one device, the maximum over devices.
struct MeshBytes {
  int64_t parameters = 0, optimizer = 0, gradients = 0;
};

// The optimizer named by a config, with warm-up, cosine and clipping.
optimizers::Optimizer make_optimizer(const TrainerConfig& config);

class TrainingPlacement;

class Trainer {
 public:
  // ValueError if the model has no loss, or has parameters without a gradient.
  Trainer(AnyModel model, TrainerConfig config);

  const AnyModel& model() const { return model_; }
  const TrainerConfig& config() const { return config_; }
  const TrainState& state() const { return state_; }
  const Parameters& parameters() const { return state_.parameters; }
  void set_parameters(Parameters parameters);  // ValueError if names or types differ
  int64_t steps_done() const { return steps_; }

  // One step on a batch for the model's loss; with config().accumulate the first dimension of each array is
  // split into that many batches. A non-finite loss, or a spike, changes nothing; after max_bad_steps in a row
  // FloatingPointError names the first bad layer.
  StepReport step(const Arrays& batch);
  // The same for a language model, with tokens [accumulate * batch, length + 1].
  StepReport step(const Array& tokens) { return step(Arrays{tokens}); }
  // The model's metric on held-out data; for a language model the mean cross entropy of tokens, in nats.
  double evaluate(const Arrays& batch) const;
  double evaluate(const Array& tokens) const { return evaluate(Arrays{tokens}); }
  // The learning rate of the next step.
  double learning_rate() const;
  // The gradient of the loss of a batch, placed like the parameters.
  Parameters gradient(const Arrays& batch) const;

  // How the mesh splits the parameters; null without one.
  const ShardingTable* sharding() const;
  // The bytes on each device, as implied by the placements and as held by the existing arrays; gradients are
  // held only if given.
  MeshBytes planned_bytes() const;
  MeshBytes held_bytes(const Parameters& gradients = {}) const;

  // Writes a checkpoint of this step atomically.
  void save() const;
  // Restores the newest complete checkpoint of the folder; false if there is none.
  bool resume();

  using OnStep = std::function<void(const StepReport&)>;
  // The batch of a step, by its index from 0: after resuming, steps get the same batches as in an uninterrupted run.
  using BatchOf = std::function<Arrays(int64_t number)>;
  // Steps until config().steps are done or `stop` is set, with checkpoints in between and one at the end. Returns
  // true if all steps were done.
  bool train(const BatchOf& batch_of, const OnStep& on_step = {}, const std::atomic<bool>* stop = nullptr);
  // The same for a language model, on tokens of a file.
  bool train(const TokenFile& tokens, const LoaderOptions& range, const OnStep& on_step = {},
             const std::atomic<bool>* stop = nullptr);

 private:
  struct Programs;
  bool train_on(const std::function<Arrays()>& next, const OnStep& on_step, const std::atomic<bool>* stop);
  void require_batch(const char* operation, const Arrays& batch) const;
  void require_like_parameters(const char* operation, const Parameters& arrays) const;
  Arrays placed(const char* operation, const Arrays& batch) const;
  std::shared_ptr<const jax::Scope> context() const;

  AnyModel model_;
  TrainerConfig config_;
  TrainState state_;
  int64_t steps_ = 0;
  bool sequence_checked_ = false;
  std::shared_ptr<const TrainingPlacement> placement_;  // null on one device
  std::shared_ptr<const Programs> programs_;
};

// The total cross entropy of held-out text, in bits per byte. Windows follow each other
// without overlap; the first token of each is not predicted.
double bits_per_byte(const Trainer& trainer, const TokenFile& tokens, const Tokenizer& tokenizer, int64_t first,
                     int64_t last);

}  // namespace capibara::training
