// Shared by the tests of linear algebra: random matrices, closeness by dtype, and 64-bit types for every test.
#pragma once

#include "rule_checks.h"

#include <capibara/config.h>
#include <capibara/linalg.h>

#include "lax/linalg/linalg.h"

#include <complex>
#include <random>

namespace capibara::linalg_checks {

namespace lax = jax::lax;
namespace la = jax::lax::linalg;
using C = std::complex<double>;

// An array of any inexact dtype, converted from normally distributed doubles.
inline Array random_matrix(DType dtype, const Shape& shape, unsigned seed = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<C> values(static_cast<std::size_t>(element_count(shape)));
  for (C& value : values) value = {normal(generator), is_complex(dtype) ? normal(generator) : 0.0};
  return lax::convert_element_type(array<C>(values, shape), dtype);
}

inline Array positive_definite(DType dtype, const Shape& shape, unsigned seed = 1) {
  Array x = random_matrix(dtype, shape, seed);
  Array identity = linalg::with_rank(linalg::eye(dtype, shape.back(), shape.back()), x.ndim());
  return lax::add(linalg::product(x, linalg::adjoint(x)), identity);
}

inline double tolerance(DType dtype) {
  switch (real_dtype(dtype)) {
    case DType::float64:
      return 1e-11;
    case DType::float32:
      return 2e-4;
    default:
      return 5e-2;
  }
}

inline void expect_close(const Array& got, const Array& want, double relative) {
  ASSERT_EQ(got.shape(), want.shape());
  std::vector<C> a = got.to_vector<C>(), b = want.to_vector<C>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_LT(std::abs(a[i] - b[i]), relative * (1 + std::abs(b[i]))) << "at " << i << ": " << a[i] << " and " << b[i];
  }
}
inline void expect_close(const Array& got, const Array& want) { expect_close(got, want, tolerance(got.dtype())); }

inline Array times(const Array& a, const Array& b) { return linalg::product(a, b); }
inline Array columns_scaled(const Array& a, const Array& s) {
  return lax::mul(a, linalg::as_dtype(lax::expand_dims(s, {s.ndim() - 1}), a.dtype()));
}
inline void expect_orthonormal_columns(const Array& q) {
  int64_t n = q.shape(-1);
  Array identity = linalg::with_rank(linalg::eye(q.dtype(), n, n), q.ndim());
  expect_close(times(linalg::adjoint(q), q), lax::add(identity, lax::zeros(times(linalg::adjoint(q), q).type())));
}

class WithX64 : public ::testing::Test {
 protected:
  ConfigScope x64_ = jax::enable_x64();
};

inline constexpr DType lapack_types[] = {DType::float32, DType::float64, DType::complex64, DType::complex128};

}  // namespace capibara::linalg_checks
