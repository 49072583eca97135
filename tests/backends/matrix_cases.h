// Batches of random matrices, and the results of CPU kernels on them for several numbers of threads.
#pragma once

#include "backends/kernel_cases.h"

namespace capibara::cpu {

// A batch of matrices as float64, whatever their storage type.
struct Matrices {
  int64_t batch, rows, cols;
  std::vector<double> values;

  double& at(int64_t b, int64_t i, int64_t j) { return values[static_cast<std::size_t>((b * rows + i) * cols + j)]; }
};

class MatrixTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { set_thread_count(1); }
  void TearDown() override { set_thread_count(1); }

  Matrices random_matrices(int64_t batch, int64_t rows, int64_t cols) {
    Matrices out{batch, rows, cols, std::vector<double>(static_cast<std::size_t>(batch * rows * cols))};
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (double& value : out.values) value = static_cast<double>(static_cast<float>(uniform(random_)));
    return out;
  }
  // x times its transpose, plus the order on the diagonal.
  Matrices positive_matrices(int64_t batch, int64_t n) {
    Matrices x = random_matrices(batch, n, n), out = x;
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          double sum = i == j ? static_cast<double>(n) : 0;
          for (int64_t k = 0; k < n; ++k) sum += x.at(b, i, k) * x.at(b, j, k);
          out.at(b, i, j) = static_cast<double>(static_cast<float>(sum));
        }
      }
    }
    return out;
  }

  // The results of a kernel, which must be bitwise equal for 1, 2 and 4 threads and not come from the reference
  // kernel.
  std::vector<Bytes> run(const char* name, DType dtype, std::vector<Matrices> operands, const Attrs& attrs,
                         Types& outputs) {
    Types inputs;
    std::vector<Bytes> stored;
    for (Matrices& m : operands) {
      inputs.push_back(type_of(dtype, {m.batch, m.rows, m.cols}));
      stored.push_back(bytes_for(inputs.back()));
      for (int64_t i = 0; i < inputs.back().size(); ++i)
        store_as<double>(dtype, stored.back().data(), i, m.values[static_cast<std::size_t>(i)]);
    }
    const Primitive p = primitive(name);
    outputs = p->type(inputs, attrs).types;
    const HostKernel kernel = host_kernel(p, inputs, outputs, attrs);
    EXPECT_EQ(reference_primitive(kernel), nullptr) << name;
    std::vector<Bytes> first;
    for (int threads : {1, 2, 4}) {
      set_thread_count(threads);
      std::vector<Bytes> results;
      for (const ArrayType& type : outputs) results.push_back(bytes_for(type));
      std::vector<std::byte*> buffers;
      for (Bytes& bytes : stored) buffers.push_back(bytes.data());
      for (Bytes& bytes : results) buffers.push_back(bytes.data());
      kernel(buffers.data());
      if (threads == 1) first = results;
      EXPECT_EQ(results, first) << name << " with " << threads << " threads";
    }
    return first;
  }

  // Vectors are treated as matrices with one row.
  static Matrices read(const ArrayType& type, const Bytes& bytes) {
    Matrices out{type.shape[0], type.shape.size() == 2 ? 1 : type.shape[1], type.shape.back(), {}};
    for (int64_t i = 0; i < type.size(); ++i) out.values.push_back(load_as<double>(type.dtype, bytes.data(), i));
    return out;
  }

  std::mt19937 random_{5};
};

}  // namespace capibara::cpu
