// Incomplete gamma and beta functions and gamma variates in vectors: against the scalar functions in float64, which
// tests/lax compares with mpmath and jax.
#include <capibara/config.h>

#include "backends/kernel_cases.h"

namespace capibara::cpu {
namespace {

class Series : public KernelTest {
 protected:
  struct Operands {
    std::vector<std::vector<double>> values;
  };

  // Numbers where series and continued fractions are long and short, including hard points.
  Operands operands(int count, int64_t size) {
    Operands out;
    std::uniform_real_distribution<double> wide(-4, 5), unit(0, 1);
    for (int k = 0; k < count; ++k) {
      std::vector<double> numbers;
      for (int64_t i = 0; i < size; ++i) numbers.push_back(k == 2 ? unit(random_) : std::exp2(wide(random_)));
      out.values.push_back(numbers);
    }
    const double hard[] = {
        0, 1, -1, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(), 0.5, 2, -0.0};
    int64_t at = 0;
    for (double first : hard) {
      for (double second : hard) {
        at += 5;  // points next to them are ordinary
        if (at >= size) break;
        out.values[0][static_cast<std::size_t>(at)] = first;
        out.values[1][static_cast<std::size_t>(at)] = second;
        if (count == 3) out.values[2][static_cast<std::size_t>(at)] = hard[at % 8];
      }
    }
    for (auto& numbers : out.values) {
      for (double& number : numbers) number = static_cast<double>(static_cast<float>(number));
    }
    return out;
  }

  static std::vector<double> run(const char* name, DType dtype, const Operands& in, bool reference) {
    const int64_t size = static_cast<int64_t>(in.values[0].size());
    Types inputs(in.values.size(), type_of(dtype, {size}));
    std::vector<Bytes> stored;
    for (const std::vector<double>& numbers : in.values) {
      stored.push_back(bytes_for(inputs[0]));
      for (int64_t i = 0; i < size; ++i)
        store_as<double>(dtype, stored.back().data(), i, numbers[static_cast<std::size_t>(i)]);
    }
    const Primitive p = primitive(name);
    const Types outputs = p->type(inputs, {}).types;
    const HostKernel kernel =
        reference ? reference_kernel(p, inputs, outputs, {}) : host_kernel(p, inputs, outputs, {});
    Bytes result = bytes_for(outputs[0]);
    std::vector<std::byte*> buffers;
    for (Bytes& bytes : stored) buffers.push_back(bytes.data());
    buffers.push_back(result.data());
    kernel(buffers.data());
    std::vector<double> numbers;
    for (int64_t i = 0; i < size; ++i) numbers.push_back(load_as<double>(dtype, result.data(), i));
    return numbers;
  }

  // Tolerances are units of the type times max(|truth|, least), plus twice the scalar function's error: the formulas
  // lose digits in single precision where terms cancel.
  void expect_truth(const char* name, int count, double least, double float_units, double double_units) {
    const Operands in = operands(count, 2003);
    const std::vector<double> truth = run(name, DType::float64, in, true);
    for (auto [dtype, units] :
         {std::pair{DType::float32, float_units}, {DType::float64, double_units}, {DType::bfloat16, 4.0}}) {
      Operands rounded = in;
      if (dtype == DType::bfloat16) {
        for (auto& numbers : rounded.values) {
          for (double& number : numbers) number = static_cast<double>(BFloat16(number));
        }
      }
      const std::vector<double> expected = dtype == DType::bfloat16 ? run(name, DType::float64, rounded, true) : truth;
      const std::vector<double> got = run(name, dtype, rounded, false), scalar = run(name, dtype, rounded, true);
      for (std::size_t i = 0; i < got.size(); ++i) {
        const double lost = std::isfinite(scalar[i] - expected[i]) ? 2 * std::abs(scalar[i] - expected[i]) : 0;
        const double tolerance = units * epsilon_of(dtype) * std::max(std::abs(expected[i]), least) + lost;
        ASSERT_TRUE(close_enough(got[i], expected[i], {std::max(tolerance, 1e-300), 0}))
            << name << " of " << rounded.values[0][i] << ", " << rounded.values[1][i]
            << (count == 3 ? concat(", ", rounded.values[2][i]) : "") << " in " << to_string(dtype) << ": " << got[i]
            << ", expected " << expected[i];
      }
    }
  }

  std::mt19937 random_{11};
};

TEST_F(Series, FollowTheFunctionsInFloat64) {
  expect_truth("igamma", 2, 1e-3, 512, 512);
  expect_truth("igammac", 2, 1e-2, 512, 512);
  expect_truth("igamma_grad_a", 2, 1e-2, 512, 512);
  expect_truth("random_gamma_grad", 2, 1e-2, 512, 512);
  expect_truth("regularized_incomplete_beta", 3, 1e-2, 1024, 512);
}

// Lengths with and without whole vectors, one element for all, several threads.
TEST_F(Series, OfEveryLength) {
  for (DType dtype : {DType::float32, DType::float64, DType::float16}) {
    const double units = dtype == DType::float16 ? 2 : 512;
    const Tolerance tolerance{units * epsilon_of(dtype), units * epsilon_of(dtype)};
    for (int64_t size : {1, 7, 16, 255, 256, 259, 1500}) {
      const ArrayType many = type_of(dtype, {size});
      check_kernel({"igamma", {many, many}, {}, {Values::awkward, Values::awkward}, tolerance});
      check_kernel({"regularized_incomplete_beta",
                    {many, many, many},
                    {},
                    {Values::awkward, Values::awkward, Values::awkward},
                    tolerance});
    }
  }
}

TEST_F(Series, GammaVariatesAreThoseOfTheReference) {
  for (DType dtype : {DType::float32, DType::float64}) {
    const double units = 64 * epsilon_of(dtype);
    for (bool log_space : {false, true}) {
      for (auto [keys, shape] : {std::pair<Shape, Shape>{{}, {1}}, {{}, {2003}}, {{3}, {3, 300}}, {{4}, {4}}}) {
        check_kernel({"random_gamma",
                      {type_of(DType::key_fry, keys), type_of(dtype, shape)},
                      {{"log_space", log_space}},
                      {Values::plain, Values::awkward},
                      {units, units}});
      }
    }
  }
}

}  // namespace
}  // namespace capibara::cpu
