// The trainer: one compiled step with donated state, bad steps that are left out, checkpoints and exact resumption.
#pragma once

#include <capibara/training/data.h>
#include <capibara/training/language_model.h>
#include <capibara/training/optimizers.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace capibara::training {

struct TrainerConfig {
  std::string folder;  // of checkpoints; empty: none are written
  int64_t steps = 400, batch = 16, length = 128;
  int64_t accumulate = 1;           // batches whose gradients are averaged in one step
  std::string optimizer = "adamw";  // sgd, momentum, adam, adamw, lion, adafactor, muon
  double learning_rate = 3e-3;      // at the end of the warm-up; then a cosine to a tenth
  int64_t warmup = 20;
  double weight_decay = 0.1, max_norm = 1;
  DType compute = DType::float32;  // bfloat16: mixed precision; parameters stay float32
  int64_t checkpoint_every = 100, keep = 2;
  double spike_factor = 3;     // a step whose loss is above this many times the average is left out; 0: never
  int64_t max_bad_steps = 10;  // bad steps in a row, after which a spike is accepted and a NaN is an error
  uint64_t seed = 0;
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
  double loss = 0;   // nats per token
  double norm = 0;   // of the gradients
  bool skipped = false;
  double seconds = 0;       // since the step before
  bool checkpoint = false;  // whether train() saves this step, when on_step has returned
};

// The optimizer that a config names, with warm-up, cosine and clipping.
optimizers::Optimizer make_optimizer(const TrainerConfig& config);

class Trainer {
 public:
  Trainer(LanguageModel model, TrainerConfig config);

  const LanguageModel& model() const { return model_; }
  const TrainerConfig& config() const { return config_; }
  const TrainState& state() const { return state_; }
  const Parameters& parameters() const { return state_.parameters; }
  void set_parameters(Parameters parameters);  // ValueError where names or shapes differ
  int64_t steps_done() const { return steps_; }

  // One step on tokens [accumulate * batch, length + 1]. A loss that is not finite, or a spike, changes nothing; after
  // max_bad_steps in a row FloatingPointError names the first bad layer.
  StepReport step(const Array& tokens);
  // The mean cross entropy of tokens [batch, length + 1], in nats.
  double evaluate(const Array& tokens) const;
  // The learning rate of the next step.
  double learning_rate() const;

  // Writes a checkpoint of this step, whole or not at all.
  void save() const;
  // Takes the newest whole checkpoint of the folder; false where there is none.
  bool resume();

  using OnStep = std::function<void(const StepReport&)>;
  // Steps until config().steps are done or `stop` is set, with checkpoints between and one at the end. Returns whether
  // it came to the end.
  bool train(const TokenFile& tokens, const LoaderOptions& range, const OnStep& on_step = {},
             const std::atomic<bool>* stop = nullptr);

 private:
  struct Programs;
  LanguageModel model_;
  TrainerConfig config_;
  TrainState state_;
  int64_t steps_ = 0;
  std::shared_ptr<const Programs> programs_;
};

// The sum of the cross entropies of text that was held out, in bits for each of its bytes. Windows follow each other
// without overlap; the first token of each is not predicted.
double bits_per_byte(const Trainer& trainer, const TokenFile& tokens, const Tokenizer& tokenizer, int64_t first,
                     int64_t last);

}  // namespace capibara::training
