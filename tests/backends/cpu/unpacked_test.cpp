// Small matmuls straight from memory: every remainder of rows and columns, against sums in double.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/kernels/gemm/gemm_unpacked.h"

namespace capibara::cpu {
namespace {

template <class T, class Multiply>
void check(int64_t m, int64_t k, int64_t n, Multiply&& multiply) {
  std::mt19937 random(static_cast<unsigned>(m * 100 + n * 10 + k));
  std::uniform_real_distribution<T> value(-1, 1);
  const int64_t left_step = k + 3, right_step = n + 5;
  std::vector<T> left(static_cast<std::size_t>(m * left_step)), right(static_cast<std::size_t>(k * right_step));
  for (T& x : left) x = value(random);
  for (T& x : right) x = value(random);
  std::vector<T> out(static_cast<std::size_t>(m * n) + 8, T(77));
  const SmallProduct<T> product{m,          k,          n,       left.data(), left_step, right.data(),
                                right_step, out.data(), nullptr, nullptr};
  if (!multiply(product)) return;  // declined, other kernels take it
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) {
        sum += static_cast<double>(left[static_cast<std::size_t>(i * left_step + p)]) *
               static_cast<double>(right[static_cast<std::size_t>(p * right_step + j)]);
      }
      const double limit = static_cast<double>(k) * std::numeric_limits<T>::epsilon();
      ASSERT_NEAR(out[static_cast<std::size_t>(i * n + j)], sum, limit)
          << m << " x " << k << " x " << n << ", element (" << i << ", " << j << ")";
    }
  }
  for (std::size_t i = static_cast<std::size_t>(m * n); i < out.size(); ++i) ASSERT_EQ(out[i], T(77)) << "past the end";
}

template <class T>
void check_all() {
  auto whole = [](const SmallProduct<T>& product) { return multiply_unpacked<T>(product); };
  auto narrow = [](const SmallProduct<T>& product) { return multiply_narrow<T>(product, nullptr); };
  for (int64_t m = 1; m <= 14; ++m) {
    for (int64_t n = 1; n <= 70; ++n) {
      check<T>(m, 1 + (m + n) % 5, n, whole);
      check<T>(m, 1 + (m + n) % 5, n, narrow);
    }
  }
  check<T>(64, 64, 64, whole);
  check<T>(33, 100, 130, whole);
  // Several blocks of rows, and sums that resume with the next part of the inner dimension.
  check<T>(101, 131, 61, narrow);
  check<T>(197, 1000, 31, narrow);
  check<T>(300, 97, 64, narrow);
}

TEST(Unpacked, MultipliesEveryRemainder) {
  check_all<float>();
  check_all<double>();
}

}  // namespace
}  // namespace capibara::cpu
