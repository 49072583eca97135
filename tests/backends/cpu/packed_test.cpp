// Large matmuls from packed panels: edges of rows, columns and k, both layouts of each operand, against sums in double;
// the same bits for any number of threads.
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

#include "backends/cpu/kernels/gemm/gemm_pack.h"
#include "core/runtime/thread_pool.h"

namespace capibara::cpu {
namespace {

template <class T>
std::vector<T> numbers(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<T> value(-1, 1);
  std::vector<T> all(static_cast<std::size_t>(count));
  for (T& x : all) x = value(random);
  return all;
}

struct Shape {
  int64_t m, k, n;
};

template <class T>
void check(const Shape& shape, bool left_turned, bool right_turned) {
  using K = typename KindOf<T>::type;
  const auto [m, k, n] = shape;
  const std::vector<T> left = numbers<T>(m * k, 1), right = numbers<T>(k * n, 2);
  const Axis rows = Axis::regular(m, left_turned ? 1 : k), left_inner = Axis::regular(k, left_turned ? m : 1);
  const Axis columns = Axis::regular(n, right_turned ? k : 1), right_inner = Axis::regular(k, right_turned ? 1 : n);
  const Axis out_rows = Axis::regular(m, n), out_columns = Axis::regular(n, 1);
  auto pack_left = [&](int64_t first, int64_t count, int64_t k0, int64_t some, int64_t width, T* to) {
    pack_matrix<K, T>(left.data(), rows, left_inner, first, count, k0, some, width, to);
  };
  auto pack_right = [&](int64_t first, int64_t count, int64_t k0, int64_t some, int64_t width, T* to) {
    pack_matrix<K, T>(right.data(), columns, right_inner, first, count, k0, some, width, to);
  };
  std::vector<T> first;
  for (const int threads : {1, 2, 3, 7}) {
    set_thread_count(threads);
    std::vector<T> out(static_cast<std::size_t>(m * n), T(77));
    Product<K>{k, pack_left, pack_right, out.data(), out_rows, out_columns}.run();
    if (first.empty()) first = out;
    ASSERT_EQ(out, first) << threads << " threads";
  }
  std::mt19937 random(3);
  for (int trial = 0; trial < 500; ++trial) {
    // Includes the last row and column.
    const int64_t i = trial % 5 == 0 ? m - 1 : static_cast<int64_t>(random()) % m;
    const int64_t j = trial % 7 == 0 ? n - 1 : static_cast<int64_t>(random()) % n;
    double sum = 0;
    for (int64_t p = 0; p < k; ++p) {
      sum += static_cast<double>(left[static_cast<std::size_t>(rows.at(i) + left_inner.at(p))]) *
             static_cast<double>(right[static_cast<std::size_t>(columns.at(j) + right_inner.at(p))]);
    }
    const double limit = static_cast<double>(k) * std::numeric_limits<T>::epsilon();
    ASSERT_NEAR(first[static_cast<std::size_t>(i * n + j)], sum, limit)
        << m << " x " << k << " x " << n << ", element (" << i << ", " << j << ")";
  }
}

class Packed : public testing::Test {
 protected:
  void SetUp() override { threads_ = thread_count(); }
  void TearDown() override { set_thread_count(threads_); }

 private:
  int threads_ = 1;
};

TEST_F(Packed, MultipliesLargeMatrices) {
  for (const Shape& shape : {Shape{161, 33, 257}, {300, 530, 97}, {169, 1029, 40}, {512, 16, 33}, {200, 7, 1}}) {
    for (const bool left : {false, true}) {
      for (const bool right : {false, true}) {
        check<float>(shape, left, right);
        check<double>(shape, left, right);
      }
    }
  }
}

}  // namespace
}  // namespace capibara::cpu
