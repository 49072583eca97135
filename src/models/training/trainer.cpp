// The trainer: the program of one step, and the loop around it.
#include <capibara/training/trainer.h>

#include <capibara/control.h>
#include <capibara/distributed.h>
#include <capibara/error.h>
#include <capibara/jit.h>
#include <capibara/random.h>
#include <capibara/transforms.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>

#include "core/runtime/counters.h"
#include "models/training/checkpoints.h"
#include "models/training/placements.h"
#include "models/training/settings.h"

namespace capibara::training {

namespace lax = jax::lax;
using optimizers::Optimizer;

namespace {

struct StepResult {
  Array loss, norm, applied;
  TrainState state;
};
CAPIBARA_TREE(StepResult, loss, norm, applied, state)

constexpr int64_t steps_before_spikes = 20;  // until the average is meaningful
constexpr double average_decay = 0.95;

optimizers::Schedule make_schedule(const TrainerConfig& config) {
  const int64_t warmup = std::min(config.warmup, config.steps - 1);
  return optimizers::warmup_cosine_decay_schedule(0.0, config.learning_rate, std::max<int64_t>(warmup, 0),
                                                  std::max<int64_t>(config.steps, 1),
                                                  {.end_value = config.learning_rate / 10});
}

// The arrays of a batch, each with its first dimension split into `parts` consecutive batches.
Arrays split_batch(const Arrays& batch, int64_t parts) {
  Arrays result;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Array& array = batch[i];
    if (array.ndim() == 0 || array.shape(0) % parts != 0) {
      throw ValueError(concat("Trainer.step: accumulate = ", parts, " must divide the first dimension of array ", i,
                              " of the batch, which is ", to_string(array.type())));
    }
    Shape shape = array.shape();
    shape[0] /= parts;
    shape.insert(shape.begin(), parts);
    result.push_back(lax::reshape(array, shape));
  }
  return result;
}

// The loss of a batch and its gradient, accumulated over `accumulate` parts one after another.
std::pair<Array, Parameters> loss_and_gradient(const AnyModel& model, const TrainerConfig& config,
                                               const TrainingPlacement* mesh, const Parameters& parameters,
                                               const Arrays& batch) {
  auto of_batch = [&](const Parameters& at, const Arrays& part) {
    auto loss = [&](const Parameters& p, const Arrays& arrays) {
      Array value = mesh                               ? mesh->loss(model, config, p, arrays)
                    : config.compute == DType::float32 ? model.loss(p, arrays)
                                                       : model.loss_in(config.compute, p, arrays);
      return value.dtype() == DType::float32 ? value : lax::convert_element_type(value, DType::float32);
    };
    auto [value, gradient] = jax::value_and_grad(loss)(at, part);
    return std::pair(value, mesh ? mesh->constrained(gradient) : gradient);
  };
  if (config.accumulate == 1) {
    auto [loss, gradient] = of_batch(parameters, batch);
    return {loss, gradient};
  }
  using Sum = std::pair<Array, Parameters>;
  Sum zero = {lax::full({}, 0.0f), jax::tree::map([](const Array& p) { return lax::zeros_like(p); }, parameters)};
  auto add = [&](const Sum& sum, const Arrays& part) {
    auto [loss, gradient] = of_batch(parameters, part);
    auto both = [](const Array& a, const Array& b) { return a + b; };
    return std::pair(Sum(sum.first + loss, jax::tree::map(both, sum.second, gradient)), std::monostate{});
  };
  const Arrays parts = split_batch(batch, config.accumulate);
  Sum sum = lax::scan(add, zero, mesh ? mesh->constrained_parts(parts) : parts).first;
  const double share = 1.0 / static_cast<double>(config.accumulate);
  return {share * sum.first, jax::tree::map([=](const Array& g) { return share * g; }, sum.second)};
}

StepResult run_step(const AnyModel& model, const TrainerConfig& config, const TrainingPlacement* mesh,
                    const Optimizer& optimizer, const TrainState& state, const Arrays& batch) {
  auto [loss, gradient] = loss_and_gradient(model, config, mesh, state.parameters, batch);
  Array norm = optimizers::global_norm(jax::tree::leaves(gradient));
  auto [updates, next] = optimizer.update(gradient, state.optimizer, state.parameters);
  Array applied = lax::is_finite(loss) & lax::is_finite(norm);
  if (config.spike_factor > 0) {
    Array expected = loss <= config.spike_factor * state.average;
    Array early = state.good < steps_before_spikes;
    Array patience = state.bad >= config.max_bad_steps;
    applied = applied & (expected | early | patience);
  }
  auto choose = [&](const Array& fresh, const Array& before) { return lax::select(applied, fresh, before); };
  StepResult result = {loss, norm, applied, {}};
  result.state.parameters =
      jax::tree::map(choose, optimizers::apply_updates(state.parameters, updates), state.parameters);
  result.state.optimizer = jax::tree::map(choose, next, state.optimizer);
  Array moved = average_decay * state.average + (1 - average_decay) * loss;
  Array first = state.good == 0;
  result.state.average = choose(lax::select(first, loss, moved), state.average);
  result.state.good = choose(state.good + 1, state.good);
  result.state.bad = choose(lax::zeros_like(state.bad), state.bad + 1);
  if (mesh) result.state = mesh->constrained(result.state);
  return result;
}

void require_positive_field(const char* field, int64_t value) {
  if (value < 1) throw ValueError(concat("TrainerConfig: ", field, " must be positive, got ", value));
}

void require_not_negative(const char* field, double value) {
  if (value >= 0 && std::isfinite(value)) return;
  throw ValueError(concat("TrainerConfig: ", field, " must be a number of 0 or more, got ", value));
}

}  // namespace

Optimizer make_optimizer(const TrainerConfig& config) {
  namespace o = optimizers;
  const o::Schedule rate = make_schedule(config);
  struct Entry {
    const char* name;
    std::function<Optimizer()> make;
  };
  const Entry entries[] = {
      {"sgd", [&] { return o::sgd(rate); }},
      {"momentum", [&] { return o::sgd(rate, {.momentum = 0.9}); }},
      {"adam", [&] { return o::adam(rate, {.b2 = 0.99}); }},
      {"adamw", [&] { return o::adamw(rate, {.b2 = 0.99, .weight_decay = config.weight_decay}); }},
      {"lion", [&] { return o::lion(rate, {.weight_decay = config.weight_decay}); }},
      {"adafactor", [&] { return o::adafactor(rate); }},
      {"muon", [&] { return o::muon(rate, {.weight_decay = config.weight_decay}); }},
  };
  std::string names;
  for (const Entry& entry : entries) {
    if (config.optimizer == entry.name) {
      return config.max_norm > 0 ? o::chain({o::clip_by_global_norm(config.max_norm), entry.make()}) : entry.make();
    }
    names += concat(names.empty() ? "" : ", ", entry.name);
  }
  throw ValueError(concat("TrainerConfig: optimizer is one of ", names, "; got '", config.optimizer, "'"));
}

struct Trainer::Programs {
  std::function<StepResult(TrainState, Arrays)> step;
  std::function<Array(const Parameters&, const Arrays&)> evaluate;
  std::function<Parameters(const Parameters&, const Arrays&)> gradient;
};

Optimizer checked_optimizer(const AnyModel& model, const TrainerConfig& config) {
  require_positive_field("steps", config.steps);
  require_positive_field("batch", config.batch);
  require_positive_field("length", config.length);
  require_positive_field("accumulate", config.accumulate);
  require_positive_field("checkpoint_every", config.checkpoint_every);
  require_positive_field("keep", config.keep);
  require_positive_field("num_workers", config.num_workers);
  require_not_negative("warmup", static_cast<double>(config.warmup));
  require_not_negative("learning_rate", config.learning_rate);
  require_not_negative("weight_decay", config.weight_decay);
  require_not_negative("max_norm", config.max_norm);
  require_not_negative("spike_factor", config.spike_factor);
  require_not_negative("max_bad_steps", static_cast<double>(config.max_bad_steps));
  if (config.compute != DType::float32 && config.compute != DType::bfloat16) {
    throw ValueError(concat("TrainerConfig: compute is float32 or bfloat16, got ", to_string(config.compute)));
  }
  const auto* language = model.target<LanguageModel>();
  if (language && language->config().positions == "learned" && config.length > language->config().max_length) {
    throw ValueError(concat("TrainerConfig: length ", config.length, " is beyond the model's max_length ",
                            language->config().max_length));
  }
  if (!model.parts().loss) {
    throw ValueError(concat("Trainer: the model '", model.name(),
                            "' has no loss (argument 'model'); give it one of parameters and a batch"));
  }
  for (const auto& [name, type] : model.types()) {
    if (is_floating(type.dtype)) continue;
    throw ValueError(concat("Trainer: parameters must be floating to have gradients (argument 'model'), '", name,
                            "' is ", to_string(type), "; keep it in the model, or in the batch"));
  }
  return make_optimizer(config);
}

Trainer::Trainer(AnyModel model, TrainerConfig config) : model_(std::move(model)), config_(std::move(config)) {
  const Optimizer optimizer = checked_optimizer(model_, config_);
  placement_ = TrainingPlacement::of(model_, config_);
  auto begin = jax::jit([model = model_](const Array& key) { return model.init(key); }, {.name = "init"});
  // Equal results of one program share memory; the step donates each of them, so each needs its own. Weak types do not
  // survive the first step, and would cause the second one to be retraced.
  auto own = [](const Array& array) {
    return lax::copy(array.weak_type() ? lax::convert_element_type(array, array.dtype()) : array);
  };
  state_.parameters = jax::tree::map(own, begin(jax::random::key(static_cast<int64_t>(config_.seed))));
  // Arrays that an optimizer returns twice, such as adafactor's empty ones, become two here.
  state_.optimizer = jax::tree::map(own, optimizer.init(state_.parameters));
  state_.average = lax::full({}, 0.0, DType::float32);  // not weak: later steps reuse the first one's program
  state_.good = lax::full({}, 0, DType::int32);
  state_.bad = lax::full({}, 0, DType::int32);
  if (placement_) state_ = placement_->placed(state_);
  auto programs = std::make_shared<Programs>();
  // The state is donated: parameters and moments are updated in place.
  programs->step = jax::jit(
      [model = model_, config = config_, mesh = placement_, optimizer](const TrainState& state, const Arrays& batch) {
        return run_step(model, config, mesh.get(), optimizer, state, batch);
      },
      {.donate_argnums = {0}, .name = "train_step"});
  programs->evaluate = jax::jit(
      [model = model_](const Parameters& parameters, const Arrays& batch) { return model.evaluate(parameters, batch); },
      {.name = "evaluate"});
  programs->gradient = jax::jit(
      [model = model_, config = config_, mesh = placement_](const Parameters& parameters, const Arrays& batch) {
        return loss_and_gradient(model, config, mesh.get(), parameters, batch).second;
      },
      {.name = "gradient"});
  programs_ = std::move(programs);
}

// Raises unless the arrays match the parameters in name, shape and type.
void Trainer::require_like_parameters(const char* operation, const Parameters& arrays) const {
  for (const auto& [name, type] : model_.types()) {
    const Array& array = parameter(arrays, name);
    if (array.shape() != type.shape || array.dtype() != type.dtype) {
      throw ValueError(concat("Trainer.", operation, ": '", name, "' must be ",
                              to_string(state_.parameters.at(name).type()), ", got ", to_string(array.type())));
    }
  }
  if (arrays.size() != state_.parameters.size()) {
    throw ValueError(
        concat("Trainer.", operation, ": expected ", state_.parameters.size(), " arrays, got ", arrays.size()));
  }
}

void Trainer::set_parameters(Parameters parameters) {
  require_like_parameters("set_parameters", parameters);
  // The next step donates its state, so the caller's arrays are copied.
  for (auto& [name, array] : parameters) array = lax::copy(array);
  state_.parameters = placement_ ? placement_->placed(parameters) : std::move(parameters);
}

void Trainer::require_batch(const char* operation, const Arrays& batch) const {
  if (batch.empty()) throw ValueError(concat("Trainer.", operation, ": the batch has no arrays (argument 'batch')"));
}

// Places the batch on the mesh; arrays that are already placed do not move.
Arrays Trainer::placed(const char* operation, const Arrays& batch) const {
  return placement_ ? placement_->placed_batch(operation, batch) : batch;
}

StepReport Trainer::step(const Arrays& batch) {
  require_batch("step", batch);
  const bool tokens = model_.target<LanguageModel>() != nullptr;
  if (tokens) {
    const Shape expected = {config_.accumulate * config_.batch, config_.length + 1};
    const Array& first = batch[0];
    if (batch.size() != 1 || first.shape() != expected || !is_integer(first.dtype())) {
      throw ValueError(concat("Trainer.step: expected int32[", expected[0], ",", expected[1],
                              "] (argument 'tokens'), got ", to_string(first.type()),
                              batch.size() == 1 ? "" : concat(" and ", batch.size() - 1, " more arrays")));
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  const Arrays own = placed("step", batch);
  if (placement_ && !sequence_checked_) placement_->require_sequence(model_, state_.parameters, own);
  sequence_checked_ = true;
  const std::shared_ptr<const jax::Scope> mesh = context();
  StepResult result = programs_->step(state_, own);  // handles: a loss that raises during tracing leaves them intact
  state_ = std::move(result.state);
  StepReport report;
  report.step = ++steps_;
  report.loss = result.loss.item<double>();
  report.norm = result.norm.item<double>();
  report.skipped = !result.applied.item<bool>();
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  process_counters.training_loss.store(report.loss, std::memory_order_relaxed);
  if (tokens) {
    Counters::add(process_counters.training_tokens,
                  static_cast<uint64_t>(config_.accumulate * config_.batch * config_.length));
  }
  Counters::add(process_counters.training_steps, 1);
  const bool finite = std::isfinite(report.loss) && std::isfinite(report.norm);
  if (!finite && state_.bad.item<int64_t>() >= config_.max_bad_steps) {
    const std::string layer = model_.first_bad_value(state_.parameters, batch);
    throw FloatingPointError(concat("Trainer.step: ", config_.max_bad_steps, " steps in a row gave a loss of ",
                                    report.loss, " and gradients of norm ", report.norm,
                                    "; the first value that is not finite is in ",
                                    layer.empty() ? "the backward pass" : layer, ". Lower the learning rate (now ",
                                    learning_rate(), ") or go back to an earlier checkpoint"));
  }
  return report;
}

double Trainer::evaluate(const Arrays& batch) const {
  require_batch("evaluate", batch);
  const Arrays own = placed("evaluate", batch);
  const std::shared_ptr<const jax::Scope> mesh = context();
  return programs_->evaluate(state_.parameters, own).item<double>();
}

Parameters Trainer::gradient(const Arrays& batch) const {
  require_batch("gradient", batch);
  const Arrays own = placed("gradient", batch);
  const std::shared_ptr<const jax::Scope> mesh = context();
  return programs_->gradient(state_.parameters, own);
}

// The context mesh during tracing and execution; null on one device.
std::shared_ptr<const jax::Scope> Trainer::context() const {
  return placement_ ? std::shared_ptr<const jax::Scope>(new jax::Scope(placement_->scope())) : nullptr;
}

const ShardingTable* Trainer::sharding() const { return placement_ ? &placement_->table() : nullptr; }

MeshBytes Trainer::planned_bytes() const {
  if (placement_) return placement_->planned(state_);
  MeshBytes bytes = held_bytes();
  bytes.gradients = bytes.parameters;
  return bytes;
}

MeshBytes Trainer::held_bytes(const Parameters& gradients) const {
  if (!gradients.empty()) require_like_parameters("held_bytes", gradients);
  Arrays optimizer;
  for (const Arrays& link : state_.optimizer) optimizer.insert(optimizer.end(), link.begin(), link.end());
  return {bytes_held(jax::tree::leaves(state_.parameters)), bytes_held(optimizer),
          bytes_held(jax::tree::leaves(gradients))};
}

double Trainer::learning_rate() const { return make_schedule(config_)(state_.good).item<double>(); }

void Trainer::save() const {
  if (config_.folder.empty()) throw ValueError("Trainer.save: the config names no folder");
  if (jax::process_count() == 1) return save_checkpoint(config_.folder, steps_, state_, config_.keep);
  // Every process can read the state now; one writes it, and the others continue once it is there.
  const TrainState whole = placement_ ? placement_->gathered(state_) : state_;
  if (jax::process_index() == 0) save_checkpoint(config_.folder, steps_, whole, config_.keep);
  jax::multihost_utils::sync_global_devices("Trainer.save");
}

bool Trainer::resume() {
  if (config_.folder.empty()) return false;
  // Types are sufficient as a prototype, since arrays over several processes cannot be read.
  const std::optional<int64_t> step = load_checkpoint(config_.folder, state_);
  if (!step) return false;
  steps_ = *step;
  if (placement_) state_ = placement_->placed(state_);
  return true;
}

bool Trainer::train(const TokenFile& tokens, const LoaderOptions& range, const OnStep& on_step,
                    const std::atomic<bool>* stop) {
  if (!model_.target<LanguageModel>()) {
    throw ValueError(
        concat("Trainer.train: the model '", model_.name(),
               "' is not a LanguageModel (argument 'tokens'); give a function from a step's number to its batch"));
  }
  LoaderOptions options = range;
  options.batch = config_.accumulate * config_.batch;
  options.length = config_.length;
  options.seed = config_.seed;
  options.num_workers = config_.num_workers;
  Loader loader(tokens, options, steps_);
  return train_on([&] { return Arrays{loader.next()}; }, on_step, stop);
}

bool Trainer::train(const BatchOf& batch_of, const OnStep& on_step, const std::atomic<bool>* stop) {
  return train_on([&] { return batch_of(steps_); }, on_step, stop);
}

bool Trainer::train_on(const std::function<Arrays()>& next, const OnStep& on_step, const std::atomic<bool>* stop) {
  const bool saves = !config_.folder.empty();
  bool stopped = stop && stop->load();
  while (steps_ < config_.steps && !stopped) {
    StepReport report = step(next());
    stopped = stop && stop->load();
    report.checkpoint = saves && (stopped || steps_ == config_.steps || steps_ % config_.checkpoint_every == 0);
    if (on_step) on_step(report);
    if (report.checkpoint) save();
  }
  return steps_ >= config_.steps;
}

double bits_per_byte(const Trainer& trainer, const TokenFile& tokens, const Tokenizer& tokenizer, int64_t first,
                     int64_t last) {
  const int64_t batch = trainer.config().batch, length = trainer.config().length;
  double nats = 0, bytes = 0;
  for (int64_t start = first; start + batch * length + 1 <= last; start += batch * length) {
    std::vector<int32_t> rows, labels;
    for (int64_t row = 0; row < batch; ++row) {
      for (int64_t i = 0; i <= length; ++i) {
        rows.push_back(tokens[start + row * length + i]);
        if (i > 0) labels.push_back(rows.back());
      }
    }
    nats += trainer.evaluate(array<int32_t>(rows, Shape{batch, length + 1})) * static_cast<double>(batch * length);
    bytes += static_cast<double>(tokenizer.decode(labels).size());
  }
  if (bytes == 0) {
    throw ValueError(
        concat("bits_per_byte: ", last - first, " tokens are fewer than one batch of ", batch, " x ", length));
  }
  return nats / bytes / std::numbers::ln2;
}

}  // namespace capibara::training
