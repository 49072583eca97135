// Draws tokens from logits, on the host: one pass over the vocabulary, and a sort of the likely ones where needed.
#include <capibara/training/serving.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/training/shuffle.h"

namespace capibara::training {

namespace {

// A number in [0, 1) that depends on both arguments alone.
double uniform(uint64_t seed, uint64_t position) {
  return static_cast<double>(mixed(mixed(seed) + position) >> 11) * 0x1p-53;
}

}  // namespace

int32_t sample_token(std::span<const float> logits, const SamplingOptions& options, int64_t position) {
  const auto require = [](bool right, const char* name, const char* expected, double got) {
    if (!right) throw ValueError(concat("sample_token: expected ", expected, " (argument '", name, "'), got ", got));
  };
  require(options.temperature >= 0, "temperature", "0 or more", options.temperature);  // rejects NaN too
  require(options.top_k >= 0, "top_k", "0 or more", static_cast<double>(options.top_k));
  require(options.top_p > 0 && options.top_p <= 1, "top_p", "more than 0, at most 1", options.top_p);
  require(options.min_p >= 0 && options.min_p <= 1, "min_p", "0 to 1", options.min_p);
  if (logits.empty()) throw ValueError("sample_token: there are no logits");
  if (std::any_of(logits.begin(), logits.end(), [](float one) { return std::isnan(one); }))
    throw ValueError("sample_token: a logit is NaN");
  const auto best = std::max_element(logits.begin(), logits.end());
  if (options.temperature == 0) return static_cast<int32_t>(best - logits.begin());

  std::vector<int32_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const auto likelier = [&](int32_t a, int32_t b) {
    const float left = logits[static_cast<std::size_t>(a)], right = logits[static_cast<std::size_t>(b)];
    return left != right ? left > right : a < b;
  };
  if (options.top_k > 0 && options.top_k < static_cast<int64_t>(tokens.size())) {
    std::nth_element(tokens.begin(), tokens.begin() + options.top_k, tokens.end(), likelier);
    tokens.resize(static_cast<std::size_t>(options.top_k));
  }
  const auto weight = [&](int32_t token) {  // relative to the most likely token
    const double below = static_cast<double>(logits[static_cast<std::size_t>(token)]) - static_cast<double>(*best);
    return std::isnan(below) ? 1.0 : std::exp(below / options.temperature);  // infinity less infinity
  };
  if (options.top_p < 1) {
    std::sort(tokens.begin(), tokens.end(), likelier);
    const double total = std::accumulate(tokens.begin(), tokens.end(), 0.0,
                                         [&](double sum, int32_t token) { return sum + weight(token); });
    double sum = 0;
    std::size_t kept = 0;
    while (kept < tokens.size() && sum < options.top_p * total) sum += weight(tokens[kept++]);
    tokens.resize(std::max<std::size_t>(kept, 1));
  }
  if (options.min_p > 0) std::erase_if(tokens, [&](int32_t token) { return weight(token) < options.min_p; });

  const double total = std::accumulate(tokens.begin(), tokens.end(), 0.0,
                                       [&](double sum, int32_t token) { return sum + weight(token); });
  double left = uniform(options.seed, static_cast<uint64_t>(position)) * total;
  for (const int32_t token : tokens) {
    left -= weight(token);
    if (left < 0) return token;
  }
  return *std::max_element(tokens.begin(), tokens.end(), [&](int32_t a, int32_t b) { return likelier(b, a); });
}

}  // namespace capibara::training
