// Learning rate schedules as functions of the step, with the same results as optax for the same settings.
#pragma once

#include <capibara/array.h>

#include <functional>
#include <utility>
#include <vector>

namespace capibara::optimizers {

// Maps the number of previous steps, an int32 scalar, to a value.
using Schedule = std::function<Array(const Array& count)>;

// A learning rate: a number or a schedule.
class LearningRate {
 public:
  LearningRate(double value) : value_(value) {}
  LearningRate(Schedule schedule) : schedule_(std::move(schedule)) {}

  bool constant() const { return schedule_ == nullptr; }
  double value() const { return value_; }
  Array at(const Array& count) const { return schedule_ ? schedule_(count) : Array(value_); }

 private:
  double value_ = 0;
  Schedule schedule_;
};

// The same value at every step.
Schedule constant_schedule(double value);

struct PolynomialOptions {
  double power = 1;
  int64_t transition_begin = 0;
};
// From init_value to end_value along a power of the fraction of steps remaining.
Schedule polynomial_schedule(double init_value, double end_value, int64_t transition_steps,
                             const PolynomialOptions& options = {});
// From init_value to end_value linearly.
Schedule linear_schedule(double init_value, double end_value, int64_t transition_steps, int64_t transition_begin = 0);

struct CosineOptions {
  double alpha = 0;  // final value as a fraction of init_value
  double exponent = 1;
};
// From init_value down along half a period of the cosine.
Schedule cosine_decay_schedule(double init_value, int64_t decay_steps, const CosineOptions& options = {});

struct WarmupCosineOptions {
  double end_value = 0;
  double exponent = 1;
};
// Linear from init_value to peak_value, then a cosine; decay_steps counts both.
Schedule warmup_cosine_decay_schedule(double init_value, double peak_value, int64_t warmup_steps, int64_t decay_steps,
                                      const WarmupCosineOptions& options = {});
// init_value times decay_rate to the power of the completed fraction of transition_steps.
Schedule exponential_decay(double init_value, int64_t transition_steps, double decay_rate);
// Schedules in sequence; each counts from its own boundary.
Schedule join_schedules(std::vector<Schedule> schedules, std::vector<int64_t> boundaries);

}  // namespace capibara::optimizers
