// QR, eigh and SVD of batches of small matrices, multiplied back in float64; QR and eigh have LAPACK's signs.
#include "backends/matrix_cases.h"

namespace capibara::cpu {
namespace {

double scale_of_matrix(Matrices& a, int64_t b) {
  double largest = 0;
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.cols; ++j) largest = std::max(largest, std::abs(a.at(b, i, j)));
  }
  return largest;
}

class SmallSpectra : public MatrixTest {
 protected:
  // LAPACK's results in float64, from the reference kernel.
  static std::vector<Bytes> by_lapack(const char* name, Matrices& a, const Attrs& attrs, const Types& outputs) {
    const Types inputs = {type_of(DType::float64, {a.batch, a.rows, a.cols})};
    Types wide = outputs;
    std::vector<Bytes> results;
    std::vector<std::byte*> buffers = {reinterpret_cast<std::byte*>(a.values.data())};
    for (ArrayType& type : wide) {
      type.dtype = DType::float64;
      results.push_back(bytes_for(type));
    }
    for (Bytes& bytes : results) buffers.push_back(bytes.data());
    reference_kernel(primitive(name), inputs, wide, attrs)(buffers.data());
    return results;
  }
  static Matrices read_wide(ArrayType type, const Bytes& bytes) {
    type.dtype = DType::float64;
    return read(type, bytes);
  }

  // Checks for orthonormal columns.
  static void expect_orthonormal(Matrices& q, int64_t b, double tolerance, const std::string& label) {
    for (int64_t i = 0; i < q.cols; ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < q.rows; ++k) sum += q.at(b, k, i) * q.at(b, k, j);
        ASSERT_NEAR(sum, i == j ? 1 : 0, tolerance) << label << ": " << i << ", " << j;
      }
    }
  }

  void check_qr(DType dtype, int64_t rows, int64_t cols, bool full) {
    Matrices a = random_matrices(rows > 32 ? 18 : 35, rows, cols);
    for (int64_t i = 0; i < rows; ++i) {
      a.at(1, i, 0) = 0;
      for (int64_t j = 0; j < cols; ++j) {
        a.at(2, i, j) *= 0x1p100;  // squares overflow float32
        a.at(3, i, j) *= 0x1p-100;
        a.at(4, i, j) = i <= j ? a.at(4, i, j) : 0;
        a.at(5, i, j) = 0;
      }
    }
    const Attrs attrs = {{"pivoting", false}, {"full_matrices", full}, {"use_magma", Attr()}};
    Types types;
    const std::vector<Bytes> results = run("qr", dtype, {a}, attrs, types);
    Matrices q = read(types[0], results[0]), r = read(types[1], results[1]);
    Types packed_types;
    const std::vector<Bytes> packed = run("geqrf", dtype, {a}, {}, packed_types);
    Matrices factors = read(packed_types[0], packed[0]);
    Matrices wanted = read_wide(packed_types[0], by_lapack("geqrf", a, {}, packed_types)[0]);
    const double tolerance = epsilon_of(dtype) * 8 * std::sqrt(static_cast<double>(rows * cols) + 4);
    for (int64_t b = 0; b < a.batch; ++b) {
      const std::string label = concat(to_string(dtype), " ", rows, " x ", cols, " matrix ", b);
      const double scale = scale_of_matrix(a, b);
      expect_orthonormal(q, b, tolerance, label);
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < cols; ++j) {
          double sum = 0;
          for (int64_t k = 0; k < q.cols; ++k) sum += q.at(b, i, k) * r.at(b, k, j);
          ASSERT_NEAR(sum, a.at(b, i, j), tolerance * scale) << label << ": " << i << ", " << j;
        }
      }
      for (int64_t i = 0; i < r.rows; ++i) {
        for (int64_t j = 0; j < cols; ++j) {
          if (j < i) {
            ASSERT_EQ(r.at(b, i, j), 0) << label;
          } else if (i < std::min(rows, cols)) {
            ASSERT_EQ(r.at(b, i, j), factors.at(b, i, j)) << label << ": geqrf and qr";
          }
        }
      }
      // The first row of R is well conditioned, and determines each sign of the diagonal where it is not small.
      for (int64_t k = 0; k < std::min(rows, cols); ++k) {
        if (std::abs(wanted.at(b, k, k)) < 0.02 * scale) continue;
        ASSERT_EQ(factors.at(b, k, k) < 0, wanted.at(b, k, k) < 0) << label << ": sign of row " << k;
      }
    }
  }
};

TEST_F(SmallSpectra, QrFactorsMultiplyToTheMatrix) {
  for (DType dtype : {DType::float32, DType::float64}) {
    for (int64_t n : {1, 2, 3, 4, 5, 8, 13, 16, 32, 64}) check_qr(dtype, n, n, false);
    for (bool full : {false, true}) {
      check_qr(dtype, 7, 3, full);
      check_qr(dtype, 3, 7, full);
      check_qr(dtype, 33, 20, full);
      check_qr(dtype, 64, 1, full);
    }
  }
}

TEST_F(SmallSpectra, TheProductOfReflectorsIsQ) {
  for (DType dtype : {DType::float32, DType::float64}) {
    for (int64_t n : {1, 3, 6, 16, 37}) {
      const Matrices a = random_matrices(21, n + 2, n);
      Types types, packed_types, product_types;
      const Attrs attrs = {{"pivoting", false}, {"full_matrices", false}, {"use_magma", Attr()}};
      const Bytes q = run("qr", dtype, {a}, attrs, types)[0];
      const std::vector<Bytes> packed = run("geqrf", dtype, {a}, {}, packed_types);
      const Types inputs = {packed_types[0], packed_types[1]};
      Bytes out = bytes_for(types[0]);
      std::byte* buffers[] = {const_cast<std::byte*>(packed[0].data()), const_cast<std::byte*>(packed[1].data()),
                              out.data()};
      const HostKernel kernel = host_kernel(primitive("householder_product"), inputs, {types[0]}, {});
      EXPECT_EQ(reference_primitive(kernel), nullptr);
      kernel(buffers);
      EXPECT_EQ(out, q) << to_string(dtype) << " " << n;
    }
  }
}

const Attrs eigh_attrs = {
    {"lower", true}, {"sort_eigenvalues", true}, {"subset_by_index", Attr()}, {"algorithm", Attr()}};

TEST_F(SmallSpectra, EigenvectorsDiagonaliseTheMatrix) {
  for (DType dtype : {DType::float32, DType::float64}) {
    for (int64_t n : {1, 2, 3, 4, 5, 8, 13, 16, 32, 49, 64}) {
      Matrices a = random_matrices(n > 32 ? 18 : 35, n, n);
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          a.at(1, i, j) = i == j ? 1 : 0;
          a.at(2, i, j) = 0;
          a.at(3, i, j) = i == j ? static_cast<double>((i * 7) % 5) : 0;  // repeated eigenvalues
          a.at(4, i, j) = i == j ? 2 : std::abs(i - j) == 1 ? -1 : 0;     // known eigenvalues
          a.at(5, i, j) = i / 2 == j / 2 ? a.at(5, i, j) : 0;             // blocks
          a.at(6, i, j) *= dtype == DType::float32 ? 0x1p100 : 0x1p900;
          a.at(7, i, j) *= dtype == DType::float32 ? 0x1p-100 : 0x1p-900;
          a.at(8, i, j) = 1;                                                                              // rank one
          a.at(9, i, j) = static_cast<double>(static_cast<float>(1.0 / static_cast<double>(i + j + 1)));  // Hilbert
          if (j > i && a.at(0, i, j) != 0) a.at(0, i, j) = 7;                                             // never read
        }
      }
      a.at(11, n - 1, 0) = std::numeric_limits<double>::quiet_NaN();
      a.at(12, 0, 0) = std::numeric_limits<double>::infinity();
      Types types;
      const std::vector<Bytes> results = run("eigh", dtype, {a}, eigh_attrs, types);
      Matrices vectors = read(types[0], results[0]), values = read(types[1], results[1]);
      Matrices wanted = read_wide(types[1], by_lapack("eigh", a, eigh_attrs, types)[1]);
      const double tolerance = epsilon_of(dtype) * 4 * static_cast<double>(n + 4);
      for (int64_t b = 0; b < a.batch; ++b) {
        const std::string label = concat(to_string(dtype), " order ", n, " matrix ", b);
        if (b == 11 || b == 12) {
          ASSERT_TRUE(std::isnan(values.at(b, 0, 0)) && std::isnan(vectors.at(b, 0, 0))) << label;
          continue;
        }
        auto entry = [&](int64_t i, int64_t j) { return i >= j ? a.at(b, i, j) : a.at(b, j, i); };
        double scale = 0;
        for (int64_t i = 0; i < n; ++i) scale = std::max(scale, std::abs(wanted.at(b, 0, i)));
        expect_orthonormal(vectors, b, tolerance, label);
        for (int64_t j = 0; j < n; ++j) {
          const double value = values.at(b, 0, j);
          ASSERT_NEAR(value, wanted.at(b, 0, j), tolerance * scale) << label;
          if (j > 0) {
            ASSERT_LE(values.at(b, 0, j - 1), value) << label;
          }
          if (b == 4) {
            const double angle = static_cast<double>(j + 1) * M_PI / static_cast<double>(n + 1);
            ASSERT_NEAR(value, 2 - 2 * std::cos(angle), tolerance * 4) << label;
          }
          for (int64_t i = 0; i < n; ++i) {
            double sum = 0;
            for (int64_t k = 0; k < n; ++k) sum += entry(i, k) * vectors.at(b, k, j);
            ASSERT_NEAR(sum, value * vectors.at(b, i, j), tolerance * scale) << label << ": vector " << j;
          }
        }
      }
    }
  }
}

TEST_F(SmallSpectra, EigenvectorsHaveTheSignsOfLapack) {
  for (int64_t n : {2, 3, 4, 7, 12}) {
    Matrices a = random_matrices(64, n, n);
    Types types;
    const std::vector<Bytes> results = run("eigh", DType::float64, {a}, eigh_attrs, types);
    const std::vector<Bytes> lapack = by_lapack("eigh", a, eigh_attrs, types);
    Matrices vectors = read(types[0], results[0]), wanted = read(types[0], lapack[0]);
    int64_t other = 0;
    for (int64_t b = 0; b < a.batch; ++b) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t i = 0; i < n; ++i) sum += vectors.at(b, i, j) * wanted.at(b, i, j);
        other += sum < 0;
      }
    }
    // A sign may differ if rounding changes the number of iterations.
    EXPECT_LE(other, a.batch * n / 50) << "order " << n;
  }
}

Attrs svd_attrs(bool vectors) {
  return {{"full_matrices", false}, {"compute_uv", vectors}, {"subset_by_index", Attr()}, {"algorithm", Attr()}};
}

TEST_F(SmallSpectra, SingularVectorsMultiplyToTheMatrix) {
  const std::pair<int64_t, int64_t> shapes[] = {{1, 1}, {2, 2},   {3, 3},   {4, 4},  {5, 3},
                                                {3, 8}, {16, 16}, {20, 33}, {64, 9}, {64, 64}};
  for (DType dtype : {DType::float32, DType::float64}) {
    for (auto [rows, cols] : shapes) {
      Matrices a = random_matrices(rows > 32 ? 18 : 35, rows, cols);
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < cols; ++j) {
          a.at(1, i, j) = i == j ? 1 : 0;
          a.at(2, i, j) = 0;
          a.at(3, i, j) = 1;  // rank one
          a.at(4, i, j) *= dtype == DType::float32 ? 0x1p100 : 0x1p900;
          a.at(5, i, j) *= dtype == DType::float32 ? 0x1p-100 : 0x1p-900;
          a.at(6, i, j) = static_cast<double>(static_cast<float>(1.0 / static_cast<double>(i + j + 1)));  // Hilbert
          if (j == 0) a.at(7, i, j) = 0;
        }
      }
      a.at(9, rows - 1, cols - 1) = std::numeric_limits<double>::quiet_NaN();
      Types types, value_types;
      const std::vector<Bytes> results = run("svd", dtype, {a}, svd_attrs(true), types);
      Matrices values = read(types[0], results[0]), u = read(types[1], results[1]), vt = read(types[2], results[2]);
      const std::vector<Bytes> alone = run("svd", dtype, {a}, svd_attrs(false), value_types);
      Matrices only = read(value_types[0], alone[0]);
      Matrices wanted = read_wide(types[0], by_lapack("svd", a, svd_attrs(false), value_types)[0]);
      Matrices v{vt.batch, vt.cols, vt.rows, std::vector<double>(vt.values.size())};
      const double tolerance = epsilon_of(dtype) * 4 * static_cast<double>(std::max(rows, cols) + 4);
      for (int64_t b = 0; b < a.batch; ++b) {
        const std::string label = concat(to_string(dtype), " ", rows, " x ", cols, " matrix ", b);
        if (b == 9) {
          ASSERT_TRUE(std::isnan(values.at(b, 0, 0)) && std::isnan(u.at(b, 0, 0)) && std::isnan(vt.at(b, 0, 0)));
          continue;
        }
        for (int64_t i = 0; i < vt.rows; ++i) {
          for (int64_t j = 0; j < vt.cols; ++j) v.at(b, j, i) = vt.at(b, i, j);
        }
        expect_orthonormal(u, b, tolerance, label);
        expect_orthonormal(v, b, tolerance, label);
        const double scale = wanted.at(b, 0, 0);
        for (int64_t k = 0; k < values.cols; ++k) {
          ASSERT_NEAR(values.at(b, 0, k), wanted.at(b, 0, k), tolerance * scale) << label;
          ASSERT_NEAR(only.at(b, 0, k), wanted.at(b, 0, k), tolerance * scale) << label;
          if (k > 0) {
            ASSERT_GE(values.at(b, 0, k - 1), values.at(b, 0, k)) << label;
          }
        }
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t j = 0; j < cols; ++j) {
            double sum = 0;
            for (int64_t k = 0; k < values.cols; ++k) sum += u.at(b, i, k) * values.at(b, 0, k) * vt.at(b, k, j);
            ASSERT_NEAR(sum, a.at(b, i, j), tolerance * scale) << label << ": " << i << ", " << j;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace capibara::cpu
