// Adafactor: second moments of large matrices stored as the means of their rows and columns.
#include "models/training/optimizer_links.h"

#include <algorithm>
#include <numeric>

namespace capibara::optimizers {

namespace lax = jax::lax;

namespace {

struct FactoredAxes {
  int64_t second, largest;
};

// The two largest axes, the later one for equal sizes; none if the smaller is too small.
std::optional<FactoredAxes> factored_axes(const Shape& shape, const AdafactorOptions& options) {
  if (!options.factored || shape.size() < 2) return std::nullopt;
  std::vector<int64_t> order(shape.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  auto size = [&](int64_t axis) { return shape[static_cast<std::size_t>(axis)]; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return size(a) < size(b); });
  const FactoredAxes axes = {order[order.size() - 2], order.back()};
  if (size(axes.second) < options.min_dim_size_to_factor) return std::nullopt;
  return axes;
}

Array mean_over(const Array& x, int64_t axis) {
  return lax::reduce_sum(x, {.axes = {axis}}) / static_cast<double>(x.shape(axis));
}

Array inverse_root(const Array& x) { return lax::rsqrt(x); }

Array zeros_without(const Array& x, int64_t axis) {
  Shape shape = x.shape();
  shape.erase(shape.begin() + axis);
  return lax::full(shape, 0.0, x.dtype());
}

struct Moments {
  Array row, column, whole;
};

Moments first_moments(const Array& parameter, const AdafactorOptions& options) {
  Array unused = lax::full({1}, 0.0, parameter.dtype());
  const auto axes = factored_axes(parameter.shape(), options);
  if (!axes) return {unused, unused, lax::zeros_like(parameter)};
  return {zeros_without(parameter, axes->largest), zeros_without(parameter, axes->second), unused};
}

// The gradient divided by the root of its second moment; `moments` is updated to this step.
Array rescale(const Array& gradient, Moments& moments, const Array& decay, const AdafactorOptions& options) {
  Array square = lax::square(gradient) + options.eps;
  auto average = [&](const Array& before, const Array& now) {
    Array rate = lax::convert_element_type(decay, now.dtype());
    Array kept = rate * before;
    return kept + (1.0 - rate) * now;
  };
  const auto axes = factored_axes(gradient.shape(), options);
  if (!axes) {
    moments.whole = average(moments.whole, square);
    return gradient * inverse_root(moments.whole);
  }
  moments.row = average(moments.row, mean_over(square, axes->largest));
  moments.column = average(moments.column, mean_over(square, axes->second));
  const int64_t kept = axes->second > axes->largest ? axes->second - 1 : axes->second;
  Array mean = lax::expand_dims(mean_over(moments.row, kept), {kept});
  Array row = lax::expand_dims(inverse_root(moments.row / mean), {axes->largest});
  Array column = lax::expand_dims(inverse_root(moments.column), {axes->second});
  return gradient * row * column;
}

// The state is the count, then row, column and unfactored moments of each parameter.
Optimizer scale_by_factored_rms(const AdafactorOptions& options) {
  auto init = [=](const Arrays& parameters) {
    Arrays state = {zero_count()};
    for (const Array& parameter : parameters) {
      Moments moments = first_moments(parameter, options);
      state.insert(state.end(), {moments.row, moments.column, moments.whole});
    }
    return OptimizerState{std::move(state)};
  };
  auto update = [=](const Arrays& gradients, const OptimizerState& state, const Arrays&) {
    const Array& count = state[0][0];
    Array time = lax::convert_element_type(count - options.decay_offset + 1, DType::float32);
    Array decay = 1.0 - lax::pow(time, lax::full_like(time, -options.decay_rate));
    Arrays updates, next = {next_count(count)};
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      Moments moments = {state[0][1 + 3 * i], state[0][2 + 3 * i], state[0][3 + 3 * i]};
      updates.push_back(rescale(gradients[i], moments, decay, options));
      next.insert(next.end(), {moments.row, moments.column, moments.whole});
    }
    return Result(std::move(updates), {std::move(next)});
  };
  return Optimizer(init, update);
}

Optimizer clip_by_block_rms(double threshold) {
  return each_leaf([=](const Array& update) {
    Array size = lax::sqrt(mean_square(update)) / threshold;
    return update / lax::max(lax::full_like(size, 1.0), size);
  });
}

Optimizer scale_by_parameter_rms(double smallest) {
  return stateless([=](const Arrays& updates, const Arrays& parameters) {
    Arrays scaled;
    for (std::size_t i = 0; i < updates.size(); ++i) {
      Array size = lax::sqrt(mean_square(parameters[i]));
      scaled.push_back(updates[i] * lax::max(size, lax::full_like(size, smallest)));
    }
    return scaled;
  });
}

Optimizer average_of_updates(double decay) {
  auto init = [](const Arrays& parameters) {
    Arrays means;
    for (const Array& parameter : parameters) means.push_back(lax::full(parameter.shape(), 0.0, DType::float32));
    return OptimizerState{std::move(means)};
  };
  auto update = [=](const Arrays& updates, const OptimizerState& state, const Arrays&) {
    Arrays means;
    for (std::size_t i = 0; i < updates.size(); ++i) means.push_back(moving_average(updates[i], state[0][i], decay));
    return Result(means, {means});
  };
  return Optimizer(init, update);
}

}  // namespace

Optimizer adafactor(LearningRate learning_rate, const AdafactorOptions& options) {
  std::vector<Optimizer> links = {scale_by_factored_rms(options)};
  if (options.clipping_threshold) links.push_back(clip_by_block_rms(*options.clipping_threshold));
  links.push_back(scale_by_learning_rate(std::move(learning_rate), false));
  if (options.multiply_by_parameter_scale) links.push_back(scale_by_parameter_rms(1e-3));
  if (options.momentum) links.push_back(average_of_updates(*options.momentum));
  if (options.weight_decay_rate) links.push_back(add_decayed_weights(*options.weight_decay_rate));
  links.push_back(scale(-1));
  return chain(std::move(links));
}

}  // namespace capibara::optimizers
