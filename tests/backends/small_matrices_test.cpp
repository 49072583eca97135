// Cholesky factors, triangular solves and LU of batches of small matrices, checked by multiplying back in float64.
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "backends/matrix_cases.h"

namespace capibara::cpu {
namespace {

class SmallMatrices : public MatrixTest {};

constexpr int64_t orders[] = {1, 2, 3, 4, 5, 8, 11, 16, 19, 32, 64, 95};

TEST_F(SmallMatrices, CholeskyFactorsMultiplyToTheMatrix) {
  for (DType dtype : {DType::float32, DType::float64}) {
    for (int64_t n : orders) {
      Matrices a = positive_matrices(n > 32 ? 19 : 37, n);
      a.at(1, 0, 0) = -1;  // not positive definite
      Types types;
      const std::vector<Bytes> results = run("cholesky", dtype, {a}, {}, types);
      Matrices l = read(types[0], results[0]);
      const double tolerance = epsilon_of(dtype) * 4 * static_cast<double>(n);
      for (int64_t b = 0; b < a.batch; ++b) {
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            if (b == 1) {
              ASSERT_TRUE(std::isnan(l.at(b, i, j))) << "order " << n << ": a matrix that has no factor";
              continue;
            }
            double sum = 0;
            for (int64_t k = 0; k < n; ++k) sum += l.at(b, i, k) * l.at(b, j, k);
            ASSERT_NEAR(sum, a.at(b, i, j), tolerance * a.at(b, i, i))
                << to_string(dtype) << " " << n << ": " << b << ", " << i << ", " << j;
            if (j > i) {
              ASSERT_EQ(l.at(b, i, j), 0);
            }
          }
        }
      }
    }
  }
}

TEST_F(SmallMatrices, TriangularSolvesOfEveryForm) {
  for (DType dtype : {DType::float32, DType::float64}) {
    for (int64_t n : {1, 3, 4, 5, 7, 16, 33, 64, 95}) {
      for (int form = 0; form < 48; ++form) {
        const bool left = form & 1, lower = form & 2, transposed = form & 4, unit = form & 8;
        const int64_t batch = form < 16 ? 21 : form < 32 ? 1 : 3;  // a few matrices are solved one at a time
        const int64_t others = form < 16 ? 1 + form % 3 * 3 : 1;   // 1, 4, 7
        Matrices a = random_matrices(batch, n, n),
                 b = left ? random_matrices(batch, n, others) : random_matrices(batch, others, n);
        for (int64_t m = 0; m < a.batch; ++m) {
          for (int64_t i = 0; i < n; ++i) {
            for (int64_t j = 0; j < n; ++j) {
              if (i == j)
                a.at(m, i, j) += a.at(m, i, j) < 0 ? -2 : 2;
              else if ((j < i) == lower)
                a.at(m, i, j) /= 4 * std::sqrt(static_cast<double>(n));
              else
                a.at(m, i, j) = std::numeric_limits<double>::quiet_NaN();  // never read
              a.at(m, i, j) = static_cast<double>(static_cast<float>(a.at(m, i, j)));
            }
          }
        }
        Types types;
        const std::vector<Bytes> results = run("triangular_solve", dtype, {a, b},
                                               {{"left_side", left},
                                                {"lower", lower},
                                                {"transpose_a", transposed},
                                                {"conjugate_a", false},
                                                {"unit_diagonal", unit}},
                                               types);
        Matrices x = read(types[0], results[0]);
        const double tolerance = epsilon_of(dtype) * 8 * static_cast<double>(n + 4);
        for (int64_t m = 0; m < a.batch; ++m) {
          auto entry = [&](int64_t i, int64_t j) -> double {
            if (transposed) std::swap(i, j);
            if (i == j && unit) return 1;
            return i == j || (j < i) == lower ? a.at(m, i, j) : 0;
          };
          for (int64_t i = 0; i < b.rows; ++i) {
            for (int64_t j = 0; j < b.cols; ++j) {
              double sum = 0;
              for (int64_t k = 0; k < n; ++k) sum += left ? entry(i, k) * x.at(m, k, j) : x.at(m, i, k) * entry(k, j);
              ASSERT_NEAR(sum, b.at(m, i, j), tolerance) << to_string(dtype) << " order " << n << " form " << form;
            }
          }
        }
      }
    }
  }
}

TEST_F(SmallMatrices, LuFactorsMultiplyToTheRowsInTheirOrder) {
  for (DType dtype : {DType::float32, DType::float64}) {
    for (int64_t rows : orders) {
      for (int64_t cols : {rows, rows + 3, std::max<int64_t>(1, rows - 2)}) {
        if (cols > 95) continue;
        Matrices a = random_matrices(rows > 32 ? 17 : 35, rows, cols);
        const int64_t steps = std::min(rows, cols);
        for (int64_t i = 0; i < rows; ++i) a.at(2, i, 0) = 0;  // no pivot
        Types types;
        const std::vector<Bytes> results = run("lu", dtype, {a}, {}, types);
        Matrices factors = read(types[0], results[0]);
        for (int64_t b = 0; b < a.batch; ++b) {
          std::vector<int64_t> order;
          for (int64_t i = 0; i < rows; ++i) order.push_back(i);
          for (int64_t k = 0; k < steps; ++k) {
            const int64_t pivot = element_as_int64(DType::int32, results[1].data(), b * steps + k);
            ASSERT_TRUE(pivot >= k && pivot < rows);
            std::swap(order[static_cast<std::size_t>(k)], order[static_cast<std::size_t>(pivot)]);
          }
          for (int64_t i = 0; i < rows; ++i) {
            ASSERT_EQ(element_as_int64(DType::int32, results[2].data(), b * rows + i),
                      order[static_cast<std::size_t>(i)]);
            for (int64_t j = 0; j < cols; ++j) {
              double sum = 0;
              for (int64_t k = 0; k <= std::min({i, j, steps - 1}); ++k) {
                const double factor = k == i ? 1 : factors.at(b, i, k);
                ASSERT_LE(std::abs(factor), 1);
                sum += factor * factors.at(b, k, j);
              }
              ASSERT_NEAR(sum, a.at(b, order[static_cast<std::size_t>(i)], j),
                          epsilon_of(dtype) * 16 * static_cast<double>(rows + 2))
                  << to_string(dtype) << " " << rows << " x " << cols;
            }
          }
        }
      }
    }
  }
}

TEST_F(SmallMatrices, PivotsAreThoseOfTheReferenceWhereNumbersAreEqual) {
  Matrices a = random_matrices(50, 9, 9);
  for (double& value : a.values) value = std::floor(value * 2);
  Types types;
  const std::vector<Bytes> own = run("lu", DType::float64, {a}, {}, types);
  const Types inputs = {type_of(DType::float64, {50, 9, 9})};
  std::vector<Bytes> wanted;
  for (const ArrayType& type : types) wanted.push_back(bytes_for(type));
  std::vector<std::byte*> buffers = {reinterpret_cast<std::byte*>(a.values.data()), wanted[0].data(), wanted[1].data(),
                                     wanted[2].data()};
  reference_kernel(primitive("lu"), inputs, types, {})(buffers.data());
  for (int64_t b = 0; b < 50; ++b) {  // only the first step: later ones compare rounded numbers
    EXPECT_EQ(element_as_int64(DType::int32, own[1].data(), b * 9),
              element_as_int64(DType::int32, wanted[1].data(), b * 9));
  }
}

// Matmuls of bytes of every value have exact sums.
TEST(ProductsOfBytes, AreExactOverTheWholeRange) {
  std::mt19937 random(3);
  const Primitive p = primitive("dot_general");
  const Attrs attrs = {{"dimension_numbers", DotDimensionNumbers{{1}, {0}, {}, {}}},
                       {"precision", Attr()},
                       {"preferred_element_type", DType::int32},
                       {"out_sharding", Attr()}};
  for (auto [m, k, n] : {std::array<int64_t, 3>{37, 1029, 61}, {16, 515, 70}, {170, 70, 30}, {1, 64, 5}, {8, 8, 24}}) {
    for (DType lhs : {DType::int8, DType::uint8}) {
      for (DType rhs : {DType::int8, DType::uint8}) {
        const Types inputs = {type_of(lhs, {m, k}), type_of(rhs, {k, n})}, outputs = p->type(inputs, attrs).types;
        Bytes a = bytes_for(inputs[0]), b = bytes_for(inputs[1]);
        for (Bytes* bytes : {&a, &b}) {
          for (std::byte& byte : *bytes) byte = static_cast<std::byte>(random() % 5 == 0 ? 0x80 : random());
        }
        auto number = [](DType dtype, std::byte byte) -> int {
          return dtype == DType::int8 ? static_cast<int8_t>(byte) : static_cast<uint8_t>(byte);
        };
        std::vector<int32_t> expected(static_cast<std::size_t>(m * n));
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t l = 0; l < k; ++l) {
            for (int64_t j = 0; j < n; ++j) {
              expected[static_cast<std::size_t>(i * n + j)] += number(lhs, a[static_cast<std::size_t>(i * k + l)]) *
                                                               number(rhs, b[static_cast<std::size_t>(l * n + j)]);
            }
          }
        }
        for (int threads : {1, 2, 4}) {
          set_thread_count(threads);
          std::vector<int32_t> out(expected.size());
          std::byte* buffers[] = {a.data(), b.data(), reinterpret_cast<std::byte*>(out.data())};
          host_kernel(p, inputs, outputs, attrs)(buffers);
          EXPECT_EQ(out, expected) << to_string(lhs) << " by " << to_string(rhs) << ", " << threads << " threads";
        }
        set_thread_count(1);
      }
    }
  }
}

#if defined(__x86_64__)
// The code for older processors gives the same results: runs these tests again in a process limited to it.
TEST(CpuLevel, LowerOnesComputeTheSame) {
  if (std::getenv("CAPIBARA_CPU_LEVEL")) GTEST_SKIP() << "CAPIBARA_CPU_LEVEL is set";
  char path[4096] = {};
  ASSERT_GT(readlink("/proc/self/exe", path, sizeof path - 1), 0);
  const std::string whole = "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX ";  // all tests, not a shard
  for (const char* level : {"baseline", "avx2", "avx512"}) {
    const std::string command =
        concat(whole, "OPENBLAS_NUM_THREADS=1 CAPIBARA_CPU_LEVEL=", level, " '", path,
               "' --gtest_brief=1 "
               "--gtest_filter='SmallMatrices.Chol*:SmallMatrices.Lu*:SmallSpectra.*:ProductsOfBytes.*:"
               "DotGeneral.OfAwkward*:DotGeneral.OfEveryDtype:Sort.OfEveryDtype*:Series.Follow*' > /dev/null");
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
  const std::string wrong =
      concat(whole, "CAPIBARA_CPU_LEVEL=avx1024 '", path, "' --gtest_filter='SmallMatrices.Chol*' > /dev/null 2>&1");
  EXPECT_NE(std::system(wrong.c_str()), 0);
}
#endif

}  // namespace
}  // namespace capibara::cpu
