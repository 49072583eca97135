// Matrices as integers: the error of rounding, bytes, and models that compute with them.
#include <capibara/lax.h>
#include <capibara/random.h>
#include <capibara/tpu.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace capibara::tpu {
namespace {

Array matrix_at(int number, int64_t rows, int64_t columns) {
  return jax::random::normal(jax::random::key(number), {.shape = {rows, columns}});
}

TEST(Quantized, MatricesAreThoseOfTheKernels) {
  const Array matrix = matrix_at(1, 40, 5);
  for (const int bits : {8, 4}) {
    const kernels::QuantizedMatrix made = quantize_matrix(matrix, bits);
    EXPECT_EQ(made.bytes(), bits == 8 ? 40 * 5 + 4 * 5 : 32 * 5 + 2 * 2 * 5);
    const std::vector<float> got = kernels::dequantize(made).to_vector<float>(), want = matrix.to_vector<float>();
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], bits == 8 ? 0.02 : 0.6);
  }
  EXPECT_THROW(quantize_matrix(matrix_at(1, 4, 5)[0]), TPUError);
}

TEST(Quantized, ModelsKeepWhatIsNoMatrixAndRefuseWhatTheyCannotRound) {
  ModelParts parts;
  parts.name = "pair";
  parts.parameters = {{"up", matrix_at(0, 8, 16)}, {"embed", matrix_at(1, 4, 8)}, {"bias", matrix_at(2, 1, 16)[0]}};
  parts.apply = [](const Parameters& p, const Arrays& batch) {
    return jax::lax::dot(batch[0], p.at("up")) + p.at("bias");
  };
  const AnyModel model{parts};
  const AnyModel made = quantize_for_tpu(model, 8);
  const Parameters& stored = made.parts().parameters;
  EXPECT_EQ(stored.at("up.codes").dtype(), DType::int8);
  EXPECT_EQ(stored.at("embed").dtype(), DType::float32);
  EXPECT_EQ(stored.count("up"), 0U);
  EXPECT_EQ(stored.at("up.codes").shape(), (Shape{16, 8}));
  const Array x = matrix_at(3, 2, 8);
  const std::vector<float> got = made.apply(stored, {x}).to_vector<float>();
  const std::vector<float> want = model.apply(parts.parameters, {x}).to_vector<float>();
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 0.1);
  EXPECT_THROW(quantize_for_tpu(model, 3), TPUError);
  parts.parameters["up"] = parts.parameters["up"] * std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(quantize_for_tpu(AnyModel(parts)), TPUError);
  parts.parameters.erase("up");
  EXPECT_THROW(quantize_for_tpu(AnyModel(parts)), TPUError);
}

}  // namespace
}  // namespace capibara::tpu
