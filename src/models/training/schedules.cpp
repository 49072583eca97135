// Learning rate schedules, with the order of operations of optax, so that results agree to the last bit.
#include <capibara/training/schedules.h>

#include <capibara/lax.h>

#include <numbers>

namespace capibara::optimizers {

namespace lax = jax::lax;

namespace {

Array as_float(const Array& count) { return lax::convert_element_type(count, DType::float32); }

Array to_power(const Array& base, double exponent) {
  return exponent == 1 ? base : lax::pow(base, lax::full_like(base, exponent));
}

void require_steps(const char* schedule, const char* argument, int64_t steps) {
  if (steps > 0) return;
  throw ValueError(concat(schedule, ": ", argument, " must be positive, got ", steps));
}

}  // namespace

Schedule constant_schedule(double value) {
  return [=](const Array&) { return Array(value); };
}

Schedule polynomial_schedule(double init_value, double end_value, int64_t transition_steps,
                             const PolynomialOptions& options) {
  require_steps("polynomial_schedule", "transition_steps", transition_steps);
  const int64_t begin = std::max<int64_t>(options.transition_begin, 0);
  return [=](const Array& count) {
    Array since = as_float(count - begin);
    Array done = lax::clamp(lax::full_like(since, 0.0), since, lax::full_like(since, transition_steps));
    Array left = to_power(1 - done / static_cast<double>(transition_steps), options.power);
    return (init_value - end_value) * left + end_value;
  };
}

Schedule linear_schedule(double init_value, double end_value, int64_t transition_steps, int64_t transition_begin) {
  return polynomial_schedule(init_value, end_value, transition_steps,
                             {.power = 1, .transition_begin = transition_begin});
}

Schedule cosine_decay_schedule(double init_value, int64_t decay_steps, const CosineOptions& options) {
  require_steps("cosine_decay_schedule", "decay_steps", decay_steps);
  return [=](const Array& count) {
    Array since = as_float(count);
    since = lax::min(since, lax::full_like(since, decay_steps));
    Array wave = 0.5 * (1 + lax::cos(std::numbers::pi * since / static_cast<double>(decay_steps)));
    return init_value * ((1 - options.alpha) * to_power(wave, options.exponent) + options.alpha);
  };
}

Schedule warmup_cosine_decay_schedule(double init_value, double peak_value, int64_t warmup_steps, int64_t decay_steps,
                                      const WarmupCosineOptions& options) {
  if (decay_steps <= warmup_steps) {
    throw ValueError(
        concat("warmup_cosine_decay_schedule: decay_steps counts the warm-up too and must be greater than ",
               "warmup_steps = ", warmup_steps, ", got ", decay_steps));
  }
  const double alpha = peak_value == 0 ? 0 : options.end_value / peak_value;
  Schedule cosine =
      cosine_decay_schedule(peak_value, decay_steps - warmup_steps, {.alpha = alpha, .exponent = options.exponent});
  if (warmup_steps == 0) return cosine;
  return join_schedules({linear_schedule(init_value, peak_value, warmup_steps), cosine}, {warmup_steps});
}

Schedule exponential_decay(double init_value, int64_t transition_steps, double decay_rate) {
  require_steps("exponential_decay", "transition_steps", transition_steps);
  return [=](const Array& count) {
    Array done = as_float(count) / static_cast<double>(transition_steps);
    return init_value * lax::pow(lax::full_like(done, decay_rate), done);
  };
}

Schedule join_schedules(std::vector<Schedule> schedules, std::vector<int64_t> boundaries) {
  if (schedules.empty() || boundaries.size() + 1 != schedules.size()) {
    throw ValueError(concat("join_schedules: ", schedules.size(), " schedules need one boundary fewer, got ",
                            boundaries.size(), " boundaries"));
  }
  return [schedules = std::move(schedules), boundaries = std::move(boundaries)](const Array& count) {
    Array value = as_float(schedules[0](count));
    for (std::size_t i = 0; i < boundaries.size(); ++i) {
      Array later = as_float(schedules[i + 1](count - boundaries[i]));
      value = lax::select(count < boundaries[i], value, later);
    }
    return value;
  };
}

}  // namespace capibara::optimizers
