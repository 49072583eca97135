// Optimizers as pairs of init and update over trees, with the same results as optax for the same settings.
#pragma once

#include <capibara/training/schedules.h>
#include <capibara/tree.h>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace capibara::optimizers {

// Optimizer state between steps: one list of arrays for each link of its chain. A tree, so that it passes
// through jit and checkpoints.
using OptimizerState = std::vector<Arrays>;

// Maps gradients to updates, which apply_updates adds to the parameters.
class Optimizer {
 public:
  using Init = std::function<OptimizerState(const Arrays& parameters)>;
  using Update =
      std::function<std::pair<Arrays, OptimizerState>(const Arrays& gradients, const OptimizerState&, const Arrays&)>;

  // `links` is the number of lists in its state.
  Optimizer(Init init, Update update, std::size_t links = 1)
      : init_(std::move(init)), update_(std::move(update)), links_(links) {}
  std::size_t links() const { return links_; }

  // The state before the first step.
  template <class Tree>
  OptimizerState init(const Tree& parameters) const {
    return init_(jax::tree::leaves(parameters));
  }
  // The updates for these gradients, and the new state.
  template <class Tree>
  std::pair<Tree, OptimizerState> update(const Tree& gradients, const OptimizerState& state,
                                         const Tree& parameters) const {
    auto [updates, next] = update_leaves(jax::tree::leaves(gradients), state, jax::tree::leaves(parameters));
    return {jax::tree::unflatten<Tree>(jax::tree::structure(gradients), updates), std::move(next)};
  }
  // The same on the leaves of the trees.
  std::pair<Arrays, OptimizerState> update_leaves(const Arrays& gradients, const OptimizerState& state,
                                                  const Arrays& parameters) const;

 private:
  Init init_;
  Update update_;
  std::size_t links_;
};

// The leaves of parameters plus those of updates, in the dtype of the parameters.
Arrays add_updates(const Arrays& parameters, const Arrays& updates);
// Parameters plus updates, in the dtype of the parameters.
template <class Tree>
Tree apply_updates(const Tree& parameters, const Tree& updates) {
  Arrays sums = add_updates(jax::tree::leaves(parameters), jax::tree::leaves(updates));
  return jax::tree::unflatten<Tree>(jax::tree::structure(parameters), sums);
}

// Optimizers in sequence: each receives the updates of the previous one.
Optimizer chain(std::vector<Optimizer> links);

// ---- links -------------------------------------------------------------------------------------------------------

// The square root of the sum of the squares of all elements.
Array global_norm(const Arrays& leaves);
// Scales all gradients down so that their global norm is at most max_norm.
Optimizer clip_by_global_norm(double max_norm);
// Clips each element to [-max_delta, max_delta].
Optimizer clip(double max_delta);
// Multiplies by a constant.
Optimizer scale(double factor);
// Multiplies by minus the learning rate; flip_sign = false: by the rate itself.
Optimizer scale_by_learning_rate(LearningRate rate, bool flip_sign = true);
// Adds weight_decay times the parameters.
Optimizer add_decayed_weights(double weight_decay);

struct TraceOptions {
  double decay = 0.9;
  bool nesterov = false;
};
// Momentum: a decaying sum of gradients.
Optimizer trace(const TraceOptions& options = {});

struct AdamOptions {
  double b1 = 0.9, b2 = 0.999, eps = 1e-8, eps_root = 0;
  bool nesterov = false;
  double weight_decay = 1e-4;  // of adamw only
};
// Gradients divided by the root of their mean square, both averaged with decay.
Optimizer scale_by_adam(const AdamOptions& options = {});

// ---- optimizers --------------------------------------------------------------------------------------------------

struct SgdOptions {
  std::optional<double> momentum = {};
  bool nesterov = false;
};
// Gradient descent, with momentum if given.
Optimizer sgd(LearningRate learning_rate, const SgdOptions& options = {});
// Adam.
Optimizer adam(LearningRate learning_rate, const AdamOptions& options = {});
// Adam with weight decay of the parameters themselves.
Optimizer adamw(LearningRate learning_rate, const AdamOptions& options = {});

struct LionOptions {
  double b1 = 0.9, b2 = 0.99, weight_decay = 1e-3;
};
// Lion: the sign of an average of gradients.
Optimizer lion(LearningRate learning_rate, const LionOptions& options = {});

struct AdafactorOptions {
  int64_t min_dim_size_to_factor = 128;
  double decay_rate = 0.8;
  int64_t decay_offset = 0;
  bool multiply_by_parameter_scale = true;
  std::optional<double> clipping_threshold = 1.0;
  std::optional<double> momentum = {};
  std::optional<double> weight_decay_rate = {};
  double eps = 1e-30;
  bool factored = true;
};
// Adafactor: second moments of large matrices stored as a row and a column.
Optimizer adafactor(LearningRate learning_rate, const AdafactorOptions& options = {});

struct MuonOptions {
  int64_t ns_steps = 5;  // Newton-Schulz iterations
  double beta = 0.95, eps = 1e-8, weight_decay = 0;
  bool nesterov = true;
  double adam_b1 = 0.9, adam_b2 = 0.999, adam_eps_root = 0, adam_weight_decay = 0;
};
// Muon: the momentum of matrices orthogonalized by Newton-Schulz iterations; AdamW for all other parameters.
Optimizer muon(LearningRate learning_rate, const MuonOptions& options = {});

}  // namespace capibara::optimizers
