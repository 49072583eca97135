// Tokens drawn from logits: frequencies beside probabilities, and which tokens each restriction leaves.
#include <capibara/training/serving.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace capibara::training {
namespace {

const std::vector<float> logits = {0.5f, 2.0f, -1.0f, 1.0f, 1.5f};

std::vector<int> drawn(const SamplingOptions& options, int count, const std::vector<float>& from = logits) {
  std::vector<int> counts(from.size(), 0);
  for (int i = 0; i < count; ++i) ++counts[static_cast<std::size_t>(sample_token(from, options, i))];
  return counts;
}

std::set<int> support(const SamplingOptions& options) {
  const std::vector<int> counts = drawn(options, 4000);
  std::set<int> tokens;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) tokens.insert(static_cast<int>(i));
  }
  return tokens;
}

TEST(Sampling, FrequenciesAreTheProbabilities) {
  for (const double temperature : {0.5, 1.0, 3.0}) {
    const int count = 40000;
    const std::vector<int> counts = drawn({.temperature = temperature, .seed = 7}, count);
    double total = 0;
    for (const float one : logits) total += std::exp(one / temperature);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double p = std::exp(logits[i] / temperature) / total;
      EXPECT_NEAR(counts[i], count * p, 5 * std::sqrt(count * p * (1 - p)) + 1) << i << " at " << temperature;
    }
  }
}

TEST(Sampling, TemperatureZeroTakesTheFirstMostLikely) {
  EXPECT_EQ(sample_token(logits, {.temperature = 0}, 3), 1);
  EXPECT_EQ(sample_token(std::vector<float>{1, 4, 4}, {.temperature = 0}, 0), 1);
}

// Probabilities are 0.53 (1), 0.32 (4), 0.19 (3), ... relative to each other as exp(logit).
TEST(Sampling, RestrictionsLeaveTheLikelyTokens) {
  EXPECT_EQ(support({}), (std::set<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(support({.top_k = 1}), (std::set<int>{1}));
  EXPECT_EQ(support({.top_k = 3}), (std::set<int>{1, 3, 4}));
  EXPECT_EQ(support({.top_k = 99}), (std::set<int>{0, 1, 2, 3, 4}));
  // exp: 1.65, 7.39, 0.37, 2.72, 4.48; sum 16.61: the first has 0.445, the first two 0.715, three 0.878, four 0.978
  EXPECT_EQ(support({.top_p = 0.44}), (std::set<int>{1}));
  EXPECT_EQ(support({.top_p = 0.45}), (std::set<int>{1, 4}));
  EXPECT_EQ(support({.top_p = 0.8}), (std::set<int>{1, 3, 4}));
  EXPECT_EQ(support({.top_p = 1e-9}), (std::set<int>{1}));
  // relative to the first: 0.223, 1, 0.050, 0.368, 0.607
  EXPECT_EQ(support({.min_p = 0.6}), (std::set<int>{1, 4}));
  EXPECT_EQ(support({.min_p = 0.3}), (std::set<int>{1, 3, 4}));
  EXPECT_EQ(support({.top_k = 3, .top_p = 0.8}), (std::set<int>{1, 4}));  // of the three: 0.507, 0.814, 1
}

TEST(Sampling, SeedAndPositionDecide) {
  const SamplingOptions one = {.seed = 1}, other = {.seed = 2};
  int same = 0;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(sample_token(logits, one, i), sample_token(logits, one, i));
    same += sample_token(logits, one, i) == sample_token(logits, other, i);
  }
  EXPECT_LT(same, 70);  // 0.31 of them are equal by chance
}

TEST(Sampling, WrongOptionsAndLogitsAreRefused) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  EXPECT_THROW(sample_token(logits, {.temperature = -1}, 0), ValueError);
  EXPECT_THROW(sample_token(logits, {.temperature = nan}, 0), ValueError);
  EXPECT_THROW(sample_token(logits, {.top_k = -1}, 0), ValueError);
  EXPECT_THROW(sample_token(logits, {.top_p = 0}, 0), ValueError);
  EXPECT_THROW(sample_token(logits, {.top_p = 1.5}, 0), ValueError);
  EXPECT_THROW(sample_token(logits, {.min_p = 2}, 0), ValueError);
  EXPECT_THROW(sample_token({}, {}, 0), ValueError);
  EXPECT_THROW(sample_token(std::vector<float>{1, nan}, {}, 0), ValueError);
  EXPECT_EQ(sample_token(std::vector<float>{-infinity, 0, -infinity}, {}, 0), 1);
  EXPECT_EQ(sample_token(std::vector<float>{1, infinity}, {}, 0), 1);
}

}  // namespace
}  // namespace capibara::training
