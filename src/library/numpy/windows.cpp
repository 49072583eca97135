// jax.numpy: window functions, in the default float type.
#include <capibara/lax.h>
#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/windows.h>

#include <numbers>

#include "lax/operators/promote.h"

namespace capibara::jax::numpy {

namespace {

constexpr double pi = std::numbers::pi;

// A window of at most one point is all ones.
Array short_window(int64_t M) { return lax::full({M}, Array(1), default_float()); }
Array points(int64_t M) { return lax::iota(default_float(), M); }

}  // namespace

Array bartlett(int64_t M) {
  if (M <= 1) return short_window(M);
  return 1 - lax::abs(2 * points(M) + 1 - M) / (M - 1);
}

Array blackman(int64_t M) {
  if (M <= 1) return short_window(M);
  Array n = points(M);
  Array difference = 0.42 - 0.5 * lax::cos(2 * pi * n / (M - 1));
  return difference + 0.08 * lax::cos(4 * pi * n / (M - 1));
}

Array hamming(int64_t M) {
  if (M <= 1) return short_window(M);
  return 0.54 - 0.46 * lax::cos(2 * pi * points(M) / (M - 1));
}

Array hanning(int64_t M) {
  if (M <= 1) return short_window(M);
  return 0.5 * (1 - lax::cos(2 * pi * points(M) / (M - 1)));
}

Array kaiser(int64_t M, const Array& beta) {
  if (M <= 1) return short_window(M);
  const double middle = 0.5 * static_cast<double>(M - 1);
  Array distance = (points(M) - middle) / middle;
  Array i0_distance = i0(beta * lax::sqrt(1 - lax::square(distance)));
  return i0_distance / i0(beta);
}

}  // namespace capibara::jax::numpy
