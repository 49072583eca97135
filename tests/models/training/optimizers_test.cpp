// Optimizers and schedules against optax's results, and against closed forms.
#include <capibara/training/optimizers.h>

#include <gtest/gtest.h>

#include <cmath>

#include "oracle/expected.h"

namespace capibara {
namespace {

using namespace optimizers;
namespace lax = jax::lax;

std::map<std::string, Optimizer> recorded_optimizers() {
  const Schedule schedule = warmup_cosine_decay_schedule(0.0, 0.05, 3, 10, {.end_value = 0.005});
  return {{"sgd", sgd(0.05)},
          {"momentum", sgd(0.05, {.momentum = 0.9})},
          {"nesterov", sgd(0.05, {.momentum = 0.9, .nesterov = true})},
          {"adam", adam(0.01)},
          {"adamw", adamw(schedule, {.b2 = 0.99, .weight_decay = 0.1})},
          {"lion", lion(0.01)},
          {"adafactor", adafactor(0.01)},
          {"clip", chain({clip_by_global_norm(0.5), sgd(0.1)})}};
}

std::map<std::string, Schedule> recorded_schedules() {
  return {{"linear", linear_schedule(0.1, 0.9, 12, 4)},
          {"cosine", cosine_decay_schedule(0.5, 20, {.alpha = 0.1})},
          {"warmup_cosine", warmup_cosine_decay_schedule(0.0, 1.0, 5, 25, {.end_value = 0.1})},
          {"exponential", exponential_decay(0.3, 7, 0.5)},
          {"polynomial", polynomial_schedule(1.0, 0.2, 15, {.power = 2, .transition_begin = 3})},
          {"joined", join_schedules({linear_schedule(0.0, 1.0, 5), constant_schedule(0.25)}, {10})}};
}

Arrays arrays_of(const oracle::Record& record, const char* key) {
  Arrays arrays;
  for (const oracle::ExpectedArray& entry : record.all(key)) arrays.push_back(entry.to_array());
  return arrays;
}

void expect_near(const Array& got, const Array& want, double tolerance, const std::string& what) {
  ASSERT_EQ(got.shape(), want.shape()) << what;
  const std::vector<float> a = got.to_vector<float>(), b = want.to_vector<float>();
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i], b[i], tolerance * (1 + std::abs(b[i]))) << what << " " << i;
}

TEST(Optimizers, TenStepsAreThoseOfOptax) {
  const std::map<std::string, Optimizer> known = recorded_optimizers();
  std::size_t seen = 0;
  for (const oracle::Record& record : oracle::read_records(oracle::recording("optimizers.expected"))) {
    if (record.name.starts_with("schedule/")) continue;
    ASSERT_TRUE(known.contains(record.name)) << record.name;
    ++seen;
    const Optimizer& optimizer = known.at(record.name);
    Arrays parameters = arrays_of(record, "parameter");
    const Arrays gradients = arrays_of(record, "gradient"), after = arrays_of(record, "after");
    OptimizerState state = optimizer.init(parameters);
    for (std::size_t first = 0; first < gradients.size(); first += parameters.size()) {
      const auto begin = gradients.begin() + static_cast<std::ptrdiff_t>(first);
      const Arrays own(begin, begin + static_cast<std::ptrdiff_t>(parameters.size()));
      auto [updates, next] = optimizer.update(own, state, parameters);
      parameters = apply_updates(parameters, updates);
      state = std::move(next);
    }
    for (std::size_t i = 0; i < after.size(); ++i) expect_near(parameters[i], after[i], 2e-6, record.name);
  }
  EXPECT_EQ(seen, known.size());
}

TEST(Schedules, AreThoseOfOptaxAtEveryStep) {
  const std::map<std::string, Schedule> known = recorded_schedules();
  std::size_t seen = 0;
  for (const oracle::Record& record : oracle::read_records(oracle::recording("optimizers.expected"))) {
    if (!record.name.starts_with("schedule/")) continue;
    const Schedule& schedule = known.at(record.name.substr(9));
    const std::vector<float> want = arrays_of(record, "value")[0].to_vector<float>();
    ++seen;
    for (std::size_t step = 0; step < want.size(); ++step) {
      const Array got = schedule(lax::full({}, static_cast<int32_t>(step), DType::int32));
      EXPECT_NEAR(lax::convert_element_type(got, DType::float32).item<float>(), want[step], 1e-6)
          << record.name << " at " << step;
    }
  }
  EXPECT_EQ(seen, known.size());
}

TEST(Optimizers, MomentumOfAConstantGradientIsAGeometricSum) {
  const Optimizer optimizer = sgd(1.0, {.momentum = 0.5});
  Arrays parameters = {array<float>({0})};
  const Arrays gradient = {array<float>({1})};
  OptimizerState state = optimizer.init(parameters);
  double expected = 0;
  for (int step = 1; step <= 6; ++step) {
    auto [updates, next] = optimizer.update(gradient, state, parameters);
    parameters = apply_updates(parameters, updates);
    state = std::move(next);
    expected -= 2 * (1 - std::pow(0.5, step));
    EXPECT_FLOAT_EQ(parameters[0].to_vector<float>()[0], static_cast<float>(expected));
  }
}

TEST(Optimizers, MuonMovesAMatrixByAnOrthogonalOne) {
  // Newton-Schulz brings all singular values near 1: the update of a diagonal gradient is near the identity.
  const Optimizer optimizer = muon(1.0, {.beta = 0.0, .nesterov = false});
  const Arrays parameters = {lax::full({2, 2}, 0.0, DType::float32)};
  const Arrays gradient = {array<float>({3, 0, 0, 0.5}, Shape{2, 2})};
  const std::vector<float> moved =
      optimizer.update(gradient, optimizer.init(parameters), parameters).first[0].to_vector<float>();
  EXPECT_NEAR(moved[0], -1, 0.35);
  EXPECT_NEAR(moved[3], -1, 0.35);
  EXPECT_NEAR(moved[1], 0, 1e-4);
  EXPECT_NEAR(moved[2], 0, 1e-4);
}

TEST(Optimizers, GlobalNormIsThatOfAllLeaves) {
  EXPECT_FLOAT_EQ(global_norm({array<float>({3, 0}), array<float>({4})}).item<float>(), 5);
}

TEST(Optimizers, StateThatIsNotTheirsIsRefused) {
  const Arrays parameters = {array<float>({1})};
  EXPECT_THROW(adam(0.1).update(parameters, OptimizerState{}, parameters), ValueError);
}

}  // namespace
}  // namespace capibara
