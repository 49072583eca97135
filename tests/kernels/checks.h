// Shared by the tests of fused kernels: random arrays, and closeness of arrays of the same type.
#pragma once

#include <capibara/capibara.h>
#include <gtest/gtest.h>

namespace capibara::kernels {

inline Array drawn(int64_t seed, Shape shape) {
  return jax::random::normal(jax::random::key(seed), {.shape = std::move(shape)});
}

inline void expect_near(const Array& got, const Array& want, double tolerance) {
  ASSERT_EQ(to_string(got.type()), to_string(want.type()));
  const auto a = got.to_vector<double>(), b = want.to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << "element " << i;
}

}  // namespace capibara::kernels
