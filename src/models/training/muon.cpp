// Muon: the momentum of each matrix, approximately orthogonalized by Newton-Schulz iterations; AdamW for the rest.
#include "models/training/optimizer_links.h"

#include <algorithm>
#include <cmath>

namespace capibara::optimizers {

namespace lax = jax::lax;

namespace {

// The quintic a x + b (x x^T) x + c (x x^T)^2 x, steep at zero; the published coefficients of Muon.
constexpr double quintic[] = {3.4445, -4.7750, 2.0315};

// [rows, columns] -> approximately the nearest matrix with orthogonal rows or columns.
Array orthogonalized(const Array& matrix, const MuonOptions& options) {
  const bool tall = matrix.shape(0) > matrix.shape(1);
  Array x = tall ? lax::transpose(matrix, {1, 0}) : matrix;
  x = x / (lax::sqrt(mean_square(x) * static_cast<double>(x.size())) + options.eps);
  for (int64_t i = 0; i < options.ns_steps; ++i) {
    Array a = lax::dot(x, lax::transpose(x, {1, 0}));
    Array b = quintic[1] * a;
    Array c = quintic[2] * lax::dot(a, a);
    Array linear = quintic[0] * x;
    x = linear + lax::dot(b + c, x);
  }
  return tall ? lax::transpose(x, {1, 0}) : x;
}

bool is_matrix(const Array& parameter) { return parameter.ndim() == 2; }

// Updates only parameters of one kind; the others pass through.
Optimizer only(bool matrices, const Optimizer& inner) {
  auto select = [matrices](const Arrays& all, const Arrays& parameters) {
    Arrays chosen;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (is_matrix(parameters[i]) == matrices) chosen.push_back(all[i]);
    }
    return chosen;
  };
  auto init = [=](const Arrays& parameters) { return inner.init(select(parameters, parameters)); };
  auto update = [=](const Arrays& gradients, const OptimizerState& state, const Arrays& parameters) {
    Result result = inner.update_leaves(select(gradients, parameters), state, select(parameters, parameters));
    Arrays updates = gradients;
    std::size_t next = 0;
    for (std::size_t i = 0; i < updates.size(); ++i) {
      if (is_matrix(parameters[i]) == matrices) updates[i] = result.first[next++];
    }
    return Result(std::move(updates), std::move(result.second));
  };
  return Optimizer(init, update, inner.links());
}

// The state is the count, then the averages of the gradients.
Optimizer scale_by_muon(const MuonOptions& options) {
  auto init = [](const Arrays& parameters) {
    Arrays state = {zero_count()};
    for (const Array& parameter : parameters) state.push_back(lax::zeros_like(parameter));
    return OptimizerState{std::move(state)};
  };
  auto update = [=](const Arrays& gradients, const OptimizerState& state, const Arrays&) {
    Array count = next_count(state[0][0]);
    Array correction = bias_correction(options.beta, count);
    Array later = options.nesterov ? bias_correction(options.beta, next_count(count)) : correction;
    Arrays updates, next = {count};
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const Array& gradient = gradients[i];
      auto like = [&](const Array& scalar) { return lax::convert_element_type(scalar, gradient.dtype()); };
      Array mean = moving_average(gradient, state[0][1 + i], options.beta);
      next.push_back(mean);
      mean = mean / like(later);
      if (options.nesterov) {
        Array ahead = gradient / like(correction);
        mean = options.beta * mean + (1 - options.beta) * ahead;
      }
      const double ratio = static_cast<double>(gradient.shape(1)) / static_cast<double>(gradient.shape(0));
      updates.push_back(std::sqrt(std::max(1.0, ratio)) * orthogonalized(mean, options));
    }
    return Result(std::move(updates), {std::move(next)});
  };
  return Optimizer(init, update);
}

}  // namespace

Optimizer muon(LearningRate learning_rate, const MuonOptions& options) {
  Optimizer matrices =
      chain({scale_by_muon(options), add_decayed_weights(options.weight_decay), scale_by_learning_rate(learning_rate)});
  Optimizer others = adamw(learning_rate, {.b1 = options.adam_b1,
                                           .b2 = options.adam_b2,
                                           .eps = options.eps,
                                           .eps_root = options.adam_eps_root,
                                           .nesterov = options.nesterov,
                                           .weight_decay = options.adam_weight_decay});
  return chain({only(true, matrices), only(false, others)});
}

}  // namespace capibara::optimizers
