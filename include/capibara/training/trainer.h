// The trainer: one compiled step with donated state, bad steps that are left out, checkpoints and exact resumption.
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
  int64_t batch = 16, length = 128;  // of tokens; batches of other models have the sizes that they come with
  int64_t accumulate = 1;            // batches whose gradients are averaged in one step
  std::string optimizer = "adamw";   // sgd, momentum, adam, adamw, lion, adafactor, muon
  double learning_rate = 3e-3;       // at the end of the warm-up; then a cosine to a tenth
  int64_t warmup = 20;
  double weight_decay = 0.1, max_norm = 1;
  // bfloat16: mixed precision. Parameters stay float32; the floating arrays of a batch are converted too.
  DType compute = DType::float32;
  int64_t checkpoint_every = 100, keep = 2;
  double spike_factor = 3;     // a step whose loss is above this many times the average is left out; 0: never
  int64_t max_bad_steps = 10;  // bad steps in a row, after which a spike is accepted and a NaN is an error
  uint64_t seed = 0;
  // The devices that train together. Parameters and what the optimizer keeps of them are placed by the rules, batches
  // are split over data x fsdp; an axis that would do nothing is refused. It changes no setting of a run: checkpoints
  // of one mesh resume on another.
  TrainingMesh mesh = {};
  MeshRules rules = {};
  int64_t num_workers = 1;  // threads that prepare batches of tokens
};

// Everything that a step changes.
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
  double seconds = 0;       // since the step before
  bool checkpoint = false;  // whether train() saves this step, when on_step has returned
};

// Bytes on one device, the most of any.
struct MeshBytes {
  int64_t parameters = 0, optimizer = 0, gradients = 0;
};

// The optimizer that a config names, with warm-up, cosine and clipping.
optimizers::Optimizer make_optimizer(const TrainerConfig& config);

class TrainingPlacement;

class Trainer {
 public:
  // ValueError where the model has no loss, or parameters that have no gradient.
  Trainer(AnyModel model, TrainerConfig config);

  const AnyModel& model() const { return model_; }
  const TrainerConfig& config() const { return config_; }
  const TrainState& state() const { return state_; }
  const Parameters& parameters() const { return state_.parameters; }
  void set_parameters(Parameters parameters);  // ValueError where names or types differ
  int64_t steps_done() const { return steps_; }

  // One step on a batch of what the model's loss takes; with config().accumulate the first dimension of each array is
  // split into as many batches. A loss that is not finite, or a spike, changes nothing; after max_bad_steps in a row
  // FloatingPointError names the first bad layer.
  StepReport step(const Arrays& batch);
  // The same of a language model, with tokens [accumulate * batch, length + 1].
  StepReport step(const Array& tokens) { return step(Arrays{tokens}); }
  // What the model reports of held-out data; of a language model the mean cross entropy of tokens, in nats.
  double evaluate(const Arrays& batch) const;
  double evaluate(const Array& tokens) const { return evaluate(Arrays{tokens}); }
  // The learning rate of the next step.
  double learning_rate() const;
  // The gradient of the loss of a batch, placed as the parameters are.
  Parameters gradient(const Arrays& batch) const;

  // How the mesh splits the parameters; null without one.
  const ShardingTable* sharding() const;
  // What the placements leave on each device, and what the arrays that are there hold; gradients are held where they
  // are given.
  MeshBytes planned_bytes() const;
  MeshBytes held_bytes(const Parameters& gradients = {}) const;

  // Writes a checkpoint of this step, whole or not at all.
  void save() const;
  // Takes the newest whole checkpoint of the folder; false where there is none.
  bool resume();

  using OnStep = std::function<void(const StepReport&)>;
  // The batch of a step, by its number from 0: steps that follow a resumption get the batches that they would have had.
  using BatchOf = std::function<Arrays(int64_t number)>;
  // Steps until config().steps are done or `stop` is set, with checkpoints between and one at the end. Returns whether
  // it came to the end.
  bool train(const BatchOf& batch_of, const OnStep& on_step = {}, const std::atomic<bool>* stop = nullptr);
  // The same of a language model, on tokens of a file.
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

// The sum of the cross entropies of text that was held out, in bits for each of its bytes. Windows follow each other
// without overlap; the first token of each is not predicted.
double bits_per_byte(const Trainer& trainer, const TokenFile& tokens, const Tokenizer& tokenizer, int64_t first,
                     int64_t last);

}  // namespace capibara::training
