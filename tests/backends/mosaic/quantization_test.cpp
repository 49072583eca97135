// TPU kernels of quantization, run by the interpreter against definitions in float64.
#include "programs.h"

namespace capibara::mosaic {
namespace {

// ---- nearest codes --------------------------------------------------------------------------------------------------

std::vector<double> nearest(const std::vector<double>& vectors, const std::vector<double>& codes, int64_t batch,
                            int64_t rows, int64_t count, int64_t dim, const std::string& metric) {
  std::vector<double> indices;
  for (int64_t row = 0; row < batch * rows; ++row) {
    double best = -INFINITY;
    int64_t found = 0;
    for (int64_t c = 0; c < count; ++c) {
      double product = 0, square = 0;
      for (int64_t d = 0; d < dim; ++d) {
        const double code = codes[static_cast<std::size_t>((row / rows * count + c) * dim + d)];
        product += code * vectors[static_cast<std::size_t>(row * dim + d)];
        square += code * code;
      }
      const double score = metric == "euclidean" ? product - square / 2
                           : metric == "cosine"  ? (square > 0 ? product / std::sqrt(square) : 0)
                                                 : product;
      if (score > best) found = c;
      best = std::max(best, score);
    }
    indices.push_back(double(found));
  }
  return indices;
}

void check_codes(const Shape& batch, int64_t rows, int64_t count, int64_t dim, const std::string& metric, DType dtype) {
  Shape vectors_shape = batch, codes_shape = batch;
  vectors_shape.insert(vectors_shape.end(), {rows, dim});
  codes_shape.insert(codes_shape.end(), {count, dim});
  // Whole numbers: many codes tie, and scores but those of cosine are exact.
  const auto rounded = [&](uint32_t seed, const Shape& shape, double steps) {
    std::vector<float> data;
    for (const double number : numbers(drawn(seed, shape))) data.push_back(float(std::round(number * steps)));
    return Array::from_host(DType::float32, shape, data.data()).astype(dtype);
  };
  const double steps = metric == "cosine" ? 20 : 1;
  const Arrays arguments = {rounded(1, vectors_shape, steps), rounded(2, codes_shape, steps)};
  const Program program = bound("vq_encode", arguments, {{"distance_metric", metric}});
  ASSERT_EQ(kernel_texts(program).size(), 1u);
  const Array indices = run(program, arguments)[0];
  EXPECT_EQ(indices.dtype(), DType::int32);
  EXPECT_EQ(numbers(indices),
            nearest(numbers(arguments[0]), numbers(arguments[1]), element_count(batch), rows, count, dim, metric))
      << rows << " x " << count << " " << metric;
}

// Blocks have 512 vectors and 512 codes.
TEST(MosaicCodes, AreTheNearest) {
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    check_codes({}, 9, 7, 5, "euclidean", dtype);
    check_codes({2, 2}, 3, 6, 4, "cosine", dtype);
    check_codes({2}, 6, 5, 3, "dot_product", dtype);
    check_codes({}, 520, 1030, 3, "euclidean", dtype);
    check_codes({}, 3, 1030, 3, "dot_product", dtype);
  }
}

TEST(MosaicCodes, AreZeroForVectorsThatAreNotNumbers) {
  std::vector<float> data = {NAN, 1, 2, 3, -INFINITY, 0};
  const Arrays arguments = {Array::from_host(DType::float32, {3, 2}, data.data()), drawn(2, {600, 2})};
  const Program program = bound("vq_encode", arguments, {{"distance_metric", "euclidean"}});
  const std::vector<double> own = numbers(run(program, arguments)[0]);
  EXPECT_EQ(own[0], 0);
  EXPECT_EQ(own, numbers(capibara::bind(primitive("vq_encode"), arguments, {{"distance_metric", "euclidean"}})[0]));
}

// ---- int8 matmuls ---------------------------------------------------------------------------------------------------

void check_int8(const Shape& batch, int64_t inputs, int64_t outputs, int64_t blocks, bool transposed, DType dtype) {
  Shape shape = batch;
  shape.push_back(transposed ? outputs : inputs);
  const Array x = drawn(1, shape, dtype), scale = drawn(2, {outputs, blocks});
  std::vector<int8_t> bytes;
  for (const double number : numbers(drawn(3, {outputs, inputs})))
    bytes.push_back(static_cast<int8_t>(std::clamp(std::round(number * 50), -128.0, 127.0)));
  const Array codes = Array::from_host(DType::int8, {outputs, inputs}, bytes.data());
  const Arrays arguments = {x, codes, scale};
  const Program program = bound("quantized_matmul", arguments, {{"inputs", inputs}, {"transposed", transposed}});
  ASSERT_EQ(kernel_texts(program).size(), 1u) << inputs << " x " << outputs;
  const std::vector<double> xs = numbers(x), scales = numbers(scale);
  const int64_t rows = element_count(batch), block = inputs / blocks;
  std::vector<double> product(static_cast<std::size_t>(rows * (transposed ? inputs : outputs)));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t o = 0; o < outputs; ++o) {
      for (int64_t i = 0; i < inputs; ++i) {
        const double weight =
            bytes[static_cast<std::size_t>(o * inputs + i)] * scales[static_cast<std::size_t>(o * blocks + i / block)];
        const int64_t from = transposed ? row * outputs + o : row * inputs + i;
        const int64_t to = transposed ? row * inputs + i : row * outputs + o;
        product[static_cast<std::size_t>(to)] += xs[static_cast<std::size_t>(from)] * weight;
      }
    }
  }
  expect_close(run(program, arguments)[0], product, dtype == DType::bfloat16 ? 4e-3 : 2e-6, "product");
}

TEST(MosaicInt8, EqualsItsDefinition) {
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    for (const bool transposed : {false, true}) {
      check_int8({3, 2}, 10, 7, 1, transposed, dtype);
      check_int8({260}, 256, 520, 2, transposed, dtype);      // ragged rows and, not transposed, ragged columns
      check_int8({2}, 1024 + 512, 16, 1, transposed, dtype);  // three passes
      check_int8({2}, 16, 1024 + 512, 1, transposed, dtype);
      check_int8({2}, 4096, 24, 2, transposed, dtype);  // two blocks of inputs for each block of scales
    }
  }
}

TEST(MosaicInt8, LeavesOtherFormatsToThePlainProgram) {
  const auto calls = [](const Array& codes, const Array& scale, int64_t inputs) {
    const Arrays arguments = {drawn(1, {2, inputs}), codes, scale};
    return kernel_texts(bound("quantized_matmul", arguments, {{"inputs", inputs}, {"transposed", false}})).size();
  };
  const auto zeros = [](DType dtype, const Shape& shape) { return drawn(1, shape).astype(dtype); };
  EXPECT_EQ(calls(zeros(DType::int8, {4, 64}), drawn(1, {4, 1}), 64), 1u);
  EXPECT_EQ(calls(zeros(DType::int8, {4, 64}), drawn(1, {4, 2}), 64), 0u);  // blocks of 32 elements
  EXPECT_EQ(calls(zeros(DType::uint8, {4, 32}), zeros(DType::bfloat16, {4, 2}), 64), 0u);
}

}  // namespace
}  // namespace capibara::mosaic
