// Shared by the figures of accelerator.cpp: the timing method, and the line that reports a figure.
#pragma once

#include <capibara/capibara.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

namespace measure {

namespace jnp = capibara::jax::numpy;
using capibara::Array;
using capibara::DType;
using capibara::Shape;

using Clock = std::chrono::steady_clock;
inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

inline bool small = false;

inline void report(const char* name, double value, const char* unit) {
  std::printf("{\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\"}\n", name, value, unit);
  std::fflush(stdout);
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Seconds per call, with `calls` of them started one after the other and awaited at the end: the median of several
// rounds.
inline double timed(int calls, const std::function<Array()>& call) {
  call().block_until_ready();
  call().block_until_ready();
  std::vector<double> rounds;
  for (int round = 0; round < 9; ++round) {
    const auto start = Clock::now();
    Array last;
    for (int i = 0; i < calls; ++i) last = call();
    last.block_until_ready();
    rounds.push_back(seconds_since(start) / calls);
  }
  return median(rounds);
}

inline Array normal_bf16(int64_t seed, const Shape& shape) {
  return capibara::jax::jit([seed, shape] {
    return capibara::jax::random::normal(capibara::jax::random::key(seed), {.shape = shape}).astype(DType::bfloat16);
  })();
}

// The largest difference, as a share of the largest value.
inline double difference(const Array& got, const Array& want) {
  const Array wide = want.astype(DType::float32);
  const Array most = jnp::max(jnp::abs(got.astype(DType::float32) - wide));
  return (most / jnp::max(jnp::abs(wide))).item<double>();
}

}  // namespace measure
