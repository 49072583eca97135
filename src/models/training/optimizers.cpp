// Links of optimizers and the plain optimizers built from them: sgd, adam, adamw, lion.
#include "models/training/optimizer_links.h"

#include <limits>
#include <numeric>

namespace capibara::optimizers {

namespace lax = jax::lax;

Array next_count(const Array& count) {
  Array last = lax::full_like(count, std::numeric_limits<int32_t>::max());
  return lax::select(lax::lt(count, last), count + 1, last);
}

Array moving_average(const Array& value, const Array& mean, double decay) {
  Array fresh = (1 - decay) * value;
  return fresh + decay * mean;
}

Array bias_correction(double decay, const Array& count) {
  Array steps = lax::convert_element_type(count, DType::float32);
  return 1 - lax::pow(lax::full_like(steps, decay), steps);
}

Array mean_square(const Array& x) {
  Shape axes(x.shape().size());
  std::iota(axes.begin(), axes.end(), int64_t{0});
  return lax::reduce_sum(lax::square(x), {.axes = axes}) / static_cast<double>(x.size());
}

Result Optimizer::update_leaves(const Arrays& gradients, const OptimizerState& state, const Arrays& parameters) const {
  if (gradients.size() != parameters.size()) {
    throw ValueError(concat("Optimizer.update: gradients have ", gradients.size(), " arrays, parameters ",
                            parameters.size(), "; both must be trees of one structure"));
  }
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].shape() == parameters[i].shape()) continue;
    throw ValueError(concat("Optimizer.update: the gradient of parameter ", i, " has type ",
                            to_string(gradients[i].type()), ", expected the shape of ",
                            to_string(parameters[i].type())));
  }
  if (state.size() != links_) {
    throw ValueError(concat("Optimizer.update: a state of ", state.size(), " lists (argument 'state'), expected ",
                            links_, ", as init returns it"));
  }
  return update_(gradients, state, parameters);
}

Arrays add_updates(const Arrays& parameters, const Arrays& updates) {
  Arrays sums;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    sums.push_back(lax::convert_element_type(parameters[i] + updates[i], parameters[i].dtype()));
  }
  return sums;
}

// The state of a chain is that of its links, concatenated, so that chains of chains stay flat.
Optimizer chain(std::vector<Optimizer> links) {
  std::size_t count = 0;
  for (const Optimizer& link : links) count += link.links();
  auto init = [links](const Arrays& parameters) {
    OptimizerState state;
    for (const Optimizer& link : links) {
      for (Arrays& part : link.init(parameters)) state.push_back(std::move(part));
    }
    return state;
  };
  auto update = [links](const Arrays& gradients, const OptimizerState& state, const Arrays& parameters) {
    Arrays updates = gradients;
    OptimizerState next;
    for (const Optimizer& link : links) {
      const auto first = state.begin() + static_cast<std::ptrdiff_t>(next.size());
      const OptimizerState own(first, first + static_cast<std::ptrdiff_t>(link.links()));
      Result result = link.update_leaves(updates, own, parameters);
      updates = std::move(result.first);
      for (Arrays& part : result.second) next.push_back(std::move(part));
    }
    return Result(std::move(updates), std::move(next));
  };
  return Optimizer(init, update, count);
}

// ---- links -------------------------------------------------------------------------------------------------------

Array global_norm(const Arrays& leaves) {
  Array total;
  for (const Array& leaf : leaves) {
    Array sum = mean_square(lax::convert_element_type(leaf, DType::float32)) * static_cast<double>(leaf.size());
    total = total.defined() ? total + sum : sum;
  }
  return lax::sqrt(total.defined() ? total : lax::full({}, 0.0f));
}

Optimizer clip_by_global_norm(double max_norm) {
  return stateless([=](const Arrays& gradients, const Arrays&) {
    Array norm = global_norm(gradients);
    Array within = norm < max_norm;
    Arrays clipped;
    for (const Array& gradient : gradients) {
      Array scaled = gradient / lax::convert_element_type(norm, gradient.dtype()) * max_norm;
      clipped.push_back(lax::select(within, gradient, scaled));
    }
    return clipped;
  });
}

Optimizer clip(double max_delta) {
  return each_leaf(
      [=](const Array& g) { return lax::clamp(lax::full_like(g, -max_delta), g, lax::full_like(g, max_delta)); });
}

Optimizer scale(double factor) {
  return each_leaf([=](const Array& gradient) { return factor * gradient; });
}

Optimizer scale_by_learning_rate(LearningRate rate, bool flip_sign) {
  const double sign = flip_sign ? -1 : 1;
  if (rate.constant()) return scale(sign * rate.value());
  return Optimizer([](const Arrays&) { return OptimizerState{{zero_count()}}; },
                   [=](const Arrays& gradients, const OptimizerState& state, const Arrays&) {
                     const Array& count = state[0][0];
                     Array factor = sign * rate.at(count);
                     Arrays updates;
                     for (const Array& gradient : gradients) {
                       updates.push_back(lax::convert_element_type(factor, gradient.dtype()) * gradient);
                     }
                     return Result(std::move(updates), {{next_count(count)}});
                   });
}

Optimizer add_decayed_weights(double weight_decay) {
  return stateless([=](const Arrays& gradients, const Arrays& parameters) {
    Arrays updates;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      updates.push_back(gradients[i] + weight_decay * parameters[i]);
    }
    return updates;
  });
}

Optimizer trace(const TraceOptions& options) {
  auto init = [](const Arrays& parameters) {
    Arrays sums;
    for (const Array& parameter : parameters) sums.push_back(lax::zeros_like(parameter));
    return OptimizerState{std::move(sums)};
  };
  auto update = [=](const Arrays& gradients, const OptimizerState& state, const Arrays&) {
    Arrays sums, updates;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      sums.push_back(gradients[i] + options.decay * state[0][i]);
      updates.push_back(options.nesterov ? gradients[i] + options.decay * sums[i] : sums[i]);
    }
    return Result(std::move(updates), {std::move(sums)});
  };
  return Optimizer(init, update);
}

// The state is the count, then the averages of the gradients, then those of their squares.
Optimizer scale_by_adam(const AdamOptions& options) {
  auto init = [](const Arrays& parameters) {
    Arrays state = {zero_count()};
    for (int moment = 0; moment < 2; ++moment) {
      for (const Array& parameter : parameters) state.push_back(lax::zeros_like(parameter));
    }
    return OptimizerState{std::move(state)};
  };
  auto update = [=](const Arrays& gradients, const OptimizerState& state, const Arrays&) {
    const std::size_t size = gradients.size();
    Array count = next_count(state[0][0]);
    Array first_correction = bias_correction(options.b1, count), second_correction = bias_correction(options.b2, count);
    Array later_correction = options.nesterov ? bias_correction(options.b1, next_count(count)) : Array();
    Arrays updates, means, squares;
    for (std::size_t i = 0; i < size; ++i) {
      const Array& gradient = gradients[i];
      auto like = [&](const Array& scalar) { return lax::convert_element_type(scalar, gradient.dtype()); };
      means.push_back(moving_average(gradient, state[0][1 + i], options.b1));
      squares.push_back(moving_average(lax::square(gradient), state[0][1 + size + i], options.b2));
      Array mean = means[i] / like(options.nesterov ? later_correction : first_correction);
      if (options.nesterov) {
        Array ahead = gradient / like(first_correction);
        mean = options.b1 * mean + (1 - options.b1) * ahead;
      }
      Array square = squares[i] / like(second_correction);
      updates.push_back(mean / (lax::sqrt(square + options.eps_root) + options.eps));
    }
    Arrays next = {count};
    next.insert(next.end(), means.begin(), means.end());
    next.insert(next.end(), squares.begin(), squares.end());
    return Result(std::move(updates), {std::move(next)});
  };
  return Optimizer(init, update);
}

// ---- optimizers --------------------------------------------------------------------------------------------------

Optimizer sgd(LearningRate learning_rate, const SgdOptions& options) {
  Optimizer descent = scale_by_learning_rate(std::move(learning_rate));
  if (!options.momentum) return descent;
  return chain({trace({.decay = *options.momentum, .nesterov = options.nesterov}), descent});
}

Optimizer adam(LearningRate learning_rate, const AdamOptions& options) {
  return chain({scale_by_adam(options), scale_by_learning_rate(std::move(learning_rate))});
}

Optimizer adamw(LearningRate learning_rate, const AdamOptions& options) {
  return chain({scale_by_adam(options), add_decayed_weights(options.weight_decay),
                scale_by_learning_rate(std::move(learning_rate))});
}

Optimizer lion(LearningRate learning_rate, const LionOptions& options) {
  auto init = [](const Arrays& parameters) {
    Arrays means;
    for (const Array& parameter : parameters) means.push_back(lax::zeros_like(parameter));
    return OptimizerState{std::move(means)};
  };
  auto update = [=](const Arrays& gradients, const OptimizerState& state, const Arrays&) {
    Arrays updates, means;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      updates.push_back(lax::sign(moving_average(gradients[i], state[0][i], options.b1)));
      means.push_back(moving_average(gradients[i], state[0][i], options.b2));
    }
    return Result(std::move(updates), {std::move(means)});
  };
  return chain({Optimizer(init, update), add_decayed_weights(options.weight_decay),
                scale_by_learning_rate(std::move(learning_rate))});
}

}  // namespace capibara::optimizers
