// Quantized matrices: their distance from the originals, computed in double precision, and matmuls with them.
#include <capibara/capibara.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backends/kernel_cases.h"
#include "kernels/checks.h"

namespace capibara::kernels {
namespace {

namespace jnp = jax::numpy;
namespace lax = jax::lax;

struct Kind {
  const char* name;
  QuantizeOptions options;
};
const Kind kinds[] = {{"int8", {}}, {"int8 by blocks", {.block = 16}}, {"int4", {.format = "int4"}}};

// Rounding loses at most half a step, 1/127 of a block's maximum magnitude. With four bits a block's squared error is
// at most that of the scale whose -8 is the maximum magnitude.
TEST(Quantize, LosesHalfAStepOfEachBlock) {
  const int64_t inputs = 96, outputs = 7;
  const Array matrix = drawn(3, {inputs, outputs});
  const auto exact = matrix.to_vector<double>();
  for (const Kind& kind : kinds) {
    const QuantizedMatrix made = quantize(matrix, kind.options);
    const auto got = dequantize(made).to_vector<double>();
    ASSERT_EQ(got.size(), exact.size());
    const bool four = kind.options.format == "int4";
    const int64_t block = four ? 32 : kind.options.block ? kind.options.block : inputs;
    for (int64_t column = 0; column < outputs; ++column) {
      for (int64_t first = 0; first < inputs; first += block) {
        const auto at = [&](int64_t i) { return static_cast<std::size_t>((first + i) * outputs + column); };
        double extreme = 0, lost = 0, plain = 0;
        for (int64_t i = 0; i < block; ++i)
          extreme = std::abs(exact[at(i)]) > std::abs(extreme) ? exact[at(i)] : extreme;
        for (int64_t i = 0; i < block; ++i) {
          const double error = got[at(i)] - exact[at(i)], step = extreme / -8;
          const double rounded = std::clamp(std::nearbyint(exact[at(i)] / step), -8.0, 7.0) * step;
          lost += error * error;
          plain += (rounded - exact[at(i)]) * (rounded - exact[at(i)]);
          if (four) continue;
          EXPECT_LE(std::abs(error), std::abs(extreme) * 0.5001 / 127) << kind.name << " " << at(i);
        }
        EXPECT_LE(lost, four ? 1.05 * plain : INFINITY) << column << " " << first;
      }
    }
  }
}

TEST(Quantize, TakesTheBytesThatItSays) {
  const Array matrix = drawn(3, {96, 8});
  EXPECT_EQ(quantize(matrix).bytes(), 96 * 8 + 8 * 4);
  EXPECT_EQ(quantize(matrix, {.block = 32}).bytes(), 96 * 8 + 3 * 8 * 4);
  EXPECT_EQ(quantize(matrix, {.format = "int4"}).bytes(), 96 * 8 / 2 + 3 * 8 * 2);
}

// Various sizes: whole blocks, parts of a block, one element; an embedding table has its outputs first.
TEST(Quantize, TakesAnyNumberOfInputsAndEitherAxis) {
  for (int64_t inputs : {1, 31, 32, 33, 70}) {
    const Array matrix = drawn(inputs, {inputs, 5});
    for (const char* format : {"int8", "int4"}) {
      const QuantizedMatrix made = quantize(matrix, {.format = format});
      const QuantizedMatrix table = quantize(jnp::transpose(matrix), {.format = format, .axis = 1});
      expect_near(dequantize(made), dequantize(table), 0);
      const Array lost = lax::reduce_max(lax::abs(dequantize(made) - matrix), {.axes = {0, 1}});
      EXPECT_LT(lost.item<float>(), 0.5) << inputs << " " << format;
      const Array rows = quantized_rows(made, array<int>({4, 0, 2}));
      expect_near(rows, jnp::take(jnp::transpose(dequantize(made)), array<int>({4, 0, 2}), {.axis = 0}), 0);
    }
  }
}

TEST(Quantize, KeepsZerosAndRefusesWhatIsNotFinite) {
  for (const char* format : {"int8", "int4"}) {
    expect_near(dequantize(quantize(jnp::zeros({40, 3}), {.format = format})), jnp::zeros({40, 3}), 0);
    for (float wrong : {NAN, INFINITY}) {
      const Array matrix = lax::concatenate({jnp::ones({39, 3}), lax::full({1, 3}, wrong)}, 0);
      try {
        quantize(matrix, {.format = format});
        ADD_FAILURE() << "nothing was raised";
      } catch (const ValueError& error) {
        EXPECT_NE(std::string(error.what()).find("finite values (argument 'matrix')"), std::string::npos)
            << error.what();
      }
    }
  }
}

// With an entry for every distinct vector nothing is lost; with fewer, each stage reduces the error, and codebooks for
// parts of the inputs lose less than a single one.
TEST(QuantizeVectors, FindsTheVectorsOfAMatrix) {
  const Array few = jnp::tile(drawn(1, {4, 8}), {6, 1});  // [24, 8], whose columns repeat one vector of 4
  const QuantizedMatrix whole = quantize_vectors(few, {.dim = 4, .entries = 48, .iterations = 2});
  expect_near(dequantize(whole), few, 1e-5);
  const Array matrix = drawn(2, {64, 80});
  const auto lost = [&](const QuantizeVectorsOptions& options) {
    const QuantizedMatrix made = quantize_vectors(matrix, options);
    const Array error = dequantize(made) - matrix;
    return jnp::sum(error * error).item<double>() / (64 * 80);
  };
  const double one = lost({.dim = 4, .entries = 64}), two = lost({.dim = 4, .entries = 64, .stages = 2});
  EXPECT_LT(one, 0.4);
  EXPECT_LT(two, 0.5 * one);
  EXPECT_LT(lost({.dim = 4, .entries = 64, .groups = 4}), one);
  EXPECT_LT(lost({.dim = 4, .entries = 300}), one);
  EXPECT_EQ(quantize_vectors(matrix, {.dim = 4, .entries = 64}).bytes(), 80 * 16 + 80 * 4 + 64 * 4 * 4);
  EXPECT_EQ(quantize_vectors(matrix, {.dim = 4, .entries = 300}).codes.dtype(), DType::uint16);
}

TEST(Quantize, NamesWhatDoesNotFit) {
  auto message = [](auto call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was raised";
  };
  const Array matrix = jnp::ones({40, 3});
  EXPECT_NE(message([&] { quantize(matrix, {.format = "int5"}); }).find("argument 'format'), got 'int5'"),
            std::string::npos);
  EXPECT_NE(message([&] { quantize(matrix, {.block = 7}); }).find("divisor of the 40 elements"), std::string::npos);
  EXPECT_NE(message([&] { quantize(matrix, {.format = "int4", .block = 16}); }).find("blocks of 32"),
            std::string::npos);
  EXPECT_NE(message([&] { quantize(jnp::ones({3})); }).find("got float32[3]"), std::string::npos);
  EXPECT_NE(message([&] { quantize(jnp::ones({0, 3})); }).find("got float32[0,3]"), std::string::npos);
  EXPECT_NE(message([&] { quantize_vectors(matrix, {.dim = 3}); }).find("divisor of the 40 inputs (argument 'dim')"),
            std::string::npos);
  EXPECT_NE(message([&] { quantize_vectors(matrix, {.groups = 3}); }).find("(argument 'groups'), got 3"),
            std::string::npos);
  QuantizedMatrix made = quantize(matrix);
  EXPECT_EQ(message([&] {
              quantized_matmul(jnp::ones({2, 41}), made);
            }),
            "quantized_matmul: expected a floating array [...,40] (argument 'x'), got float32[2,41]");
  made.codes = lax::slice_in_dim(made.codes, 0, 39, 1, 1);
  EXPECT_EQ(message([&] {
              quantized_matmul(jnp::ones({2, 40}), made);
            }),
            "quantized_matmul: expected int8[3,40] (argument 'codes'), got int8[3,39]");
}

// For any number of rows, inside and outside jit, and with the transpose.
TEST(QuantizedMatmul, MultipliesByWhatTheCodesStandFor) {
  for (const Kind& kind : {kinds[0], kinds[1], kinds[2], Kind{"vectors", {}}}) {
    for (int64_t inputs : {16, 80, 1040}) {
      const Array matrix = drawn(1, {inputs, 37});
      const QuantizedMatrix made = std::string(kind.name) == "vectors"
                                       ? quantize_vectors(matrix, {.entries = 32, .stages = 2, .iterations = 1})
                                       : quantize(matrix, kind.options);
      const Array wide = dequantize(made, DType::float64);
      for (int64_t rows : {1, 2, 3, 5, 8, 13, 16, 17, 40}) {
        const Array x = drawn(rows, {rows, inputs}), y = drawn(rows, {rows, 37});
        auto exact = [](const Array& a, const Array& b) {
          return lax::convert_element_type(jnp::matmul(lax::convert_element_type(a, DType::float64), b),
                                           DType::float32);
        };
        const double tolerance = 3e-6 * static_cast<double>(inputs);
        const Array want = exact(x, wide), back = exact(y, jnp::transpose(wide));
        expect_near(quantized_matmul(x, made), want, tolerance);
        expect_near(jax::jit([](const Array& a, const QuantizedMatrix& m) { return quantized_matmul(a, m); })(x, made),
                    want, tolerance);
        expect_near(quantized_matmul(y, made, {.transposed = true}), back, tolerance);
      }
    }
  }
}

TEST(QuantizedMatmul, KeepsTheDtypeOfX) {
  const QuantizedMatrix made = quantize(drawn(1, {64, 9}), {.format = "int4"});
  const Array x = lax::convert_element_type(drawn(2, {3, 64}), DType::bfloat16);
  const Array want = quantized_matmul(lax::convert_element_type(x, DType::float32), made);
  const Array got = quantized_matmul(x, made);
  EXPECT_EQ(got.dtype(), DType::bfloat16);
  expect_near(lax::convert_element_type(got, DType::float32), want, 0.1);
}

TEST(QuantizedMatmul, HasDerivativesByX) {
  for (const Kind& kind : kinds) {
    const QuantizedMatrix made = quantize(drawn(1, {48, 6}), kind.options);
    const Array wide = dequantize(made), x = drawn(2, {3, 48}), dx = drawn(4, {3, 48});
    auto coded = [&](const Array& a) { return jnp::sum(jnp::sin(quantized_matmul(a, made))); };
    auto whole = [&](const Array& a) { return jnp::sum(jnp::sin(jnp::matmul(a, wide))); };
    expect_near(jax::grad(coded)(x), jax::grad(whole)(x), 2e-4);
    const auto along = [&](auto f) {
      return jax::grad([&](const Array& a) { return jnp::sum(jax::grad(f)(a) * dx); })(x);
    };
    expect_near(along(coded), along(whole), 5e-3);
    auto by_scale = [&](const Array& scale) {
      QuantizedMatrix own = made;
      own.scale = scale;
      return jnp::sum(jnp::sin(quantized_matmul(x, own)));
    };
    auto by_scale_wide = [&](const Array& scale) {
      QuantizedMatrix own = made;
      own.scale = scale;
      return jnp::sum(jnp::sin(jnp::matmul(x, dequantize(own))));
    };
    expect_near(lax::convert_element_type(jax::grad(by_scale)(made.scale), DType::float32),
                lax::convert_element_type(jax::grad(by_scale_wide)(made.scale), DType::float32), 0.3);
  }
}

TEST(QuantizedMatmul, BatchesByRowsAndByMatrices) {
  const QuantizedMatrix made = quantize(drawn(1, {48, 6}), {.format = "int4"});
  const Array x = drawn(2, {4, 3, 48});
  auto multiply = [&](const Array& a) { return quantized_matmul(a, made); };
  expect_near(jax::vmap(multiply)(x), quantized_matmul(x, made), 0);
  const QuantizedMatrix other = quantize(drawn(5, {48, 6}), {.format = "int4"});
  const Array codes = lax::stack({made.codes, other.codes}, 0), scale = lax::stack({made.scale, other.scale}, 0);
  const Array two = lax::slice_in_dim(x, 0, 2);
  auto each = [&](const Array& a, const Array& c, const Array& s) {
    return quantized_matmul(a, QuantizedMatrix{c, s, {}, 48});
  };
  const Array got = jax::vmap(each)(two, codes, scale);
  expect_near(lax::index_in_dim(got, 0, 0, false), multiply(lax::index_in_dim(x, 0, 0, false)), 1e-5);
  expect_near(lax::index_in_dim(got, 1, 0, false), quantized_matmul(lax::index_in_dim(x, 1, 0, false), other), 1e-5);
}

// x rounded to 127 steps of its scale on either side, as written in double precision.
std::vector<double> rounded_matmul(const Array& x, const QuantizedMatrix& matrix, double step) {
  const auto values = x.to_vector<double>(), scales = matrix.scale.to_vector<double>();
  const auto codes = matrix.codes.to_vector<int>();
  const auto inputs = static_cast<std::size_t>(matrix.inputs), outputs = scales.size(), rows = values.size() / inputs;
  std::vector<double> result(rows * outputs);
  for (std::size_t r = 0; r < rows; ++r) {
    double own = 0;
    for (std::size_t k = 0; k < inputs; ++k) own = std::max(own, std::abs(values[r * inputs + k]) / 127);
    const double size = step > 0 ? step : own > 0 ? own : 1;
    for (std::size_t c = 0; c < outputs; ++c) {
      double sum = 0;
      for (std::size_t k = 0; k < inputs; ++k)
        sum += std::clamp(std::nearbyint(values[r * inputs + k] / size), -127.0, 127.0) * codes[c * inputs + k];
      result[r * outputs + c] = sum * size * scales[c];
    }
  }
  return result;
}

TEST(QuantizedMatmul, RoundsXToBytesOfAScaleForAllOrForEachRow) {
  const float static_step = 0.015F;  // clips magnitudes beyond 1.9
  for (int64_t inputs : {1, 40, 515}) {
    for (int64_t rows : {1, 3, 70}) {
      QuantizedMatrix made = quantize(drawn(1, {inputs, 37}));
      Array x = drawn(rows, {rows, inputs});
      if (rows == 3) x = lax::concatenate({lax::slice_in_dim(x, 0, 2), jnp::zeros({1, inputs})}, 0);
      for (const float step : {0.0F, static_step}) {
        made.input_scale = step > 0 ? array<float>({step}) : jnp::zeros({0});
        const auto want = rounded_matmul(x, made, step);
        const auto compiled = jax::jit([](const Array& a, const QuantizedMatrix& m) { return quantized_matmul(a, m); });
        const Array mapped = jax::vmap([&](const Array& a) { return quantized_matmul(a, made); })(x);
        for (const Array& got : {quantized_matmul(x, made), compiled(x, made), mapped}) {
          const auto values = got.to_vector<double>();
          ASSERT_EQ(values.size(), want.size());
          // A quotient that is half an integer in one precision may round to the other side: one step of one input.
          const double slack = step > 0 ? 0.06 : 0.08;
          for (std::size_t i = 0; i < want.size(); ++i)
            EXPECT_NEAR(values[i], want[i], slack + 1e-5 * std::abs(want[i])) << inputs << " " << rows << " " << step;
        }
      }
    }
  }
}

TEST(QuantizedMatmul, OfRoundedXPassesDerivativesThroughAndKeepsNaN) {
  QuantizedMatrix made = quantize(drawn(1, {48, 6}));
  const Array x = drawn(2, {3, 48}), weights = drawn(3, {3, 6});
  const auto loss = [&](const QuantizedMatrix& m) {
    return [&](const Array& a) { return jnp::sum(weights * quantized_matmul(a, m)); };
  };
  const Array want = jax::grad(loss(made))(x);
  QuantizedMatrix rounded = made;
  for (const Array& scale : {array<float>({0.02F}), jnp::zeros({0})}) {
    rounded.input_scale = scale;
    expect_near(jax::grad(loss(rounded))(x), want, 0);
    const Array bad = lax::concatenate({lax::slice_in_dim(x, 0, 1), lax::full({1, 48}, NAN)}, 0);
    const auto got = quantized_matmul(bad, rounded).to_vector<float>();
    for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(std::isnan(got[i]), i >= 6) << i;
    const Array y = drawn(4, {2, 6});  // the transpose takes y as it is
    expect_near(quantized_matmul(y, rounded, {.transposed = true}), quantized_matmul(y, made, {.transposed = true}), 0);
  }
}

TEST(QuantizedMatmul, RefusesToRoundXBesideOtherCodes) {
  const auto message = [](QuantizedMatrix matrix, const Array& scale) -> std::string {
    matrix.input_scale = scale;
    try {
      quantized_matmul(jnp::ones({2, matrix.inputs}), matrix);
    } catch (const TypeError& error) {
      return error.what();
    }
    return "nothing was raised";
  };
  const Array matrix = drawn(1, {64, 6}), one = array<float>({0.1F});
  EXPECT_EQ(message(quantize(matrix, {.block = 32}), one),
            "quantized_matmul: expected float32[6,1] (argument 'scale'), got float32[6,2]");
  EXPECT_EQ(message(quantize(matrix, {.format = "int4"}), one),
            "quantized_matmul: expected int8 where x is int8 too (argument 'codes'), got uint8[6,32]");
  EXPECT_NE(message(quantize_vectors(matrix, {.entries = 8}), one).find("none beside a codebook"), std::string::npos);
  EXPECT_NE(message(quantize(matrix), jnp::ones({2})).find("float32[1] for all of x"), std::string::npos);
  EXPECT_NE(message(quantize(matrix), jnp::ones({})).find("expected one dimension"), std::string::npos);
}

// Programs and their gradients contain one call each, for which the CPU backend has a kernel, and no array of the
// matrix's shape.
TEST(QuantizedMatmul, IsOneCallInPrograms) {
  const QuantizedMatrix made = quantize(drawn(1, {64, 48}), {.format = "int4"});
  auto loss = [&](const Array& a) { return jnp::sum(jnp::sin(quantized_matmul(a, made))); };
  const Program program = jax::make_jaxpr(jax::grad(loss))(drawn(2, {2, 64}));
  const std::string text = program.to_string();
  EXPECT_EQ(text.find("f32[48,64]"), std::string::npos) << text;
  EXPECT_EQ(text.find("f32[64,48]"), std::string::npos) << text;
  int calls = 0;
  for (const Equation& equation : program.equations()) {
    if (equation.primitive != primitive("quantized_matmul")) continue;
    EXPECT_TRUE(cpu::has_own_kernel(program, equation));
    ++calls;
  }
  EXPECT_EQ(calls, 2) << text;  // forward, and backward with the transpose
}

class QuantizedKernel : public cpu::KernelTest {};

TEST_F(QuantizedKernel, EqualsTheDefinition) {
  using cpu::type_of;
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    const double loss = dtype == DType::float32 ? 1e-5 : 1e-2;
    for (int64_t rows : {1, 2, 3, 8, 11, 33}) {
      for (bool transposed : {false, true}) {
        const auto check = [&](int64_t inputs, int64_t outputs, Types matrix) {
          Types types = {type_of(dtype, {rows, transposed ? outputs : inputs})};
          types.insert(types.end(), matrix.begin(), matrix.end());
          check_kernel({"quantized_matmul",
                        types,
                        {{"inputs", inputs}, {"transposed", transposed}},
                        {},
                        {.absolute = loss * static_cast<double>(inputs) * 32, .relative = loss}});
        };
        check(75, 21, {type_of(DType::int8, {21, 75}), type_of(DType::float32, {21, 1})});
        check(75, 21, {type_of(DType::int8, {21, 75}), type_of(DType::float32, {21, 3})});
        check(75, 21, {type_of(DType::uint8, {21, 48}), type_of(DType::bfloat16, {21, 3})});
        if (!transposed && rows <= 16) {
          for (int64_t scales : {0, 1})
            check(
                75, 21,
                {type_of(DType::int8, {21, 75}), type_of(DType::float32, {21, 1}), type_of(DType::float32, {scales})});
        }
        check(600, 50, {type_of(DType::uint8, {50, 304}), type_of(DType::bfloat16, {50, 19})});
        check(24, 5,
              {type_of(DType::uint16, {5, 6, 1}), type_of(DType::float32, {5, 1}),
               type_of(DType::float32, {1, 1, 300, 4})});
        check(24, 5,
              {type_of(DType::uint8, {5, 4, 2}), type_of(DType::float32, {5, 1}),
               type_of(DType::float32, {2, 2, 13, 6})});
      }
    }
  }
}

}  // namespace
}  // namespace capibara::kernels
