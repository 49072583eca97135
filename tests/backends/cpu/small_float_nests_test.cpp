// Functions of 16-bit floats: on every number, computed in lanes and by table lookup; and their softmax.
#include <capibara/lax.h>
#include <capibara/nn.h>
#include <capibara/numpy.h>

#include <gtest/gtest.h>

#include <numeric>

#include "backends/cpu/small_programs.h"
#include "program/trace/stage.h"

namespace capibara::cpu {
namespace {

namespace lax = jax::lax;

// All numbers of a dtype except denormals, `copies` times.
Array all_numbers(DType dtype, int copies) {
  const int64_t exponent = dtype == DType::bfloat16 ? 0x7f80 : 0x7c00;
  std::vector<uint16_t> codes(static_cast<std::size_t>(copies) * 65536);
  std::iota(codes.begin(), codes.end(), uint16_t{0});
  for (uint16_t& code : codes) {
    if ((code & exponent) == 0) code &= 0x8000;
  }
  return Array::from_host(dtype, {copies, 65536}, codes.data());
}

std::string difference_from_reference(const Maker& function, const Array& input, double tolerance) {
  const Program program = program_of(function, {input});
  const Arrays want = executed("reference", program, {input}), got = executed("cpu", program, {input});
  return random_programs::difference(got, want, std::vector<double>(want.size(), tolerance));
}

TEST(SmallFloatNests, ExponentialsOfAllNumbersAreThoseOfFloat32Rounded) {
  for (DType dtype : {DType::bfloat16, DType::float16}) {
    // Few elements are computed, many are looked up in a table.
    for (int copies : {1, 9}) {
      EXPECT_EQ(difference_from_reference([](std::span<const Array> x) { return Arrays{lax::exp(x[0])}; },
                                          all_numbers(dtype, copies), 0),
                "")
          << to_string(dtype) << " " << copies;
    }
  }
}

TEST(SmallFloatNests, TablesHoldWhatLoopsCompute) {
  const Maker chain = [](std::span<const Array> x) {
    const Array smooth = lax::tanh(x[0] * 0.75f) + lax::abs(x[0]);
    return Arrays{smooth, lax::convert_element_type(lax::exp(lax::neg(lax::abs(smooth))), DType::float32)};
  };
  for (DType dtype : {DType::bfloat16, DType::float16}) {
    const Array few = all_numbers(dtype, 1), many = all_numbers(dtype, 9);
    const auto run = [&](const Array& input) {
      const FlatFunction flat = [&](std::span<const Array> given) { return chain(given); };
      return backend("cpu").compile(stage(flat, Types{input.type()}, "f").program)->execute(Arrays{input}, {false});
    };
    const Arrays computed = run(few), found = run(many);
    for (std::size_t i = 0; i < computed.size(); ++i) {
      const Array last = lax::slice(found[i], {8, 0}, {9, 65536});
      EXPECT_EQ(random_programs::difference(std::vector{last}, std::vector{computed[i]}, {0}), "")
          << to_string(dtype) << " " << i;
    }
  }
}

TEST(SmallFloatNests, SoftmaxDividesByTheSumOfItsRow) {
  const Array count = lax::convert_element_type(lax::iota(DType::int32, 64 * 300), DType::float32);
  for (DType dtype : {DType::bfloat16, DType::float16}) {
    const Array rows = lax::convert_element_type(lax::reshape(lax::sin(count * 0.7f) * 6.0f, {64, 300}), dtype);
    // The sum may round to an adjacent number, since its order differs.
    EXPECT_EQ(
        difference_from_reference([](std::span<const Array> x) { return Arrays{jax::nn::softmax(x[0])}; }, rows, 0.01),
        "");
  }
}

}  // namespace
}  // namespace capibara::cpu
