// Epilogue loops that run on rows of a matmul as they are finished: same bits as unfused, for any number of threads.
#include <capibara/lax.h>
#include <capibara/nn.h>
#include <capibara/numpy.h>

#include <gtest/gtest.h>

#include <random>

#include "backends/cpu/driver/lower.h"
#include "backends/cpu/small_programs.h"
#include "compiler/optimise/pipeline.h"
#include "core/runtime/thread_pool.h"

namespace capibara::cpu {
namespace {

namespace lax = jax::lax;
namespace numpy = jax::numpy;

std::size_t epilogues(const Program& program, const std::vector<bool>& donated = {}) {
  return lower_to_loops(optimise(program), donated).products.size();
}

// 1 if a float32 matmul of this shape reports when blocks of its rows are complete, else 0.
std::size_t is_cut(int64_t m, int64_t n) { return m > 160 && n >= 16 && n <= 2048 && m * n * 4 >= 4 << 20 ? 1 : 0; }

// The epilogue as a separate program: the matmul's result is one of its inputs.
using Following = std::function<Arrays(const Array& product, std::span<const Array> others)>;

// Compares bits with two programs, one for the matmul and one for the epilogue, and values with the reference.
void expect_same(const Following& following, const Array& lhs, const Array& rhs, const Arrays& others,
                 std::size_t fused, double tolerance = 1e-3) {
  Arrays inputs = {lhs, rhs};
  inputs.insert(inputs.end(), others.begin(), others.end());
  auto product = [](std::span<const Array> x) { return numpy::matmul(x[0], x[1]); };
  const Program whole =
      program_of([&](std::span<const Array> x) { return following(product(x), x.subspan(2)); }, inputs);
  EXPECT_EQ(epilogues(whole), fused);
  const Program alone = program_of([&](std::span<const Array> x) { return Arrays{product(x)}; }, {lhs, rhs});
  Arrays between = executed("cpu", alone, {lhs, rhs});
  between.insert(between.end(), others.begin(), others.end());
  const Program rest = program_of([&](std::span<const Array> x) { return following(x[0], x.subspan(1)); }, between);
  const Arrays apart = executed("cpu", rest, between), want = executed("reference", whole, inputs);
  const int threads = thread_count();
  for (int count : {1, 2, 4, 7}) {
    set_thread_count(count);
    const Arrays got = executed("cpu", whole, inputs);
    EXPECT_EQ(random_programs::difference(got, apart, std::vector<double>(got.size(), 0)), "") << count << " threads";
    EXPECT_EQ(random_programs::difference(got, want, std::vector<double>(got.size(), tolerance)), "")
        << count << " threads";
  }
  set_thread_count(threads);
}

TEST(Epilogues, OfBiasActivationAndResidualOverAwkwardShapes) {
  for (const auto& [m, k, n] : std::vector<std::array<int64_t, 3>>{{2100, 33, 513},
                                                                   {4099, 16, 300},
                                                                   {700, 7, 2047},
                                                                   {70001, 5, 17},
                                                                   {1100, 700, 1000},
                                                                   {161, 9, 2047},
                                                                   {2000, 3, 2049}}) {
    expect_same(
        [](const Array& product, std::span<const Array> x) { return Arrays{lax::tanh(product * 0.5f + x[0]) + x[1]}; },
        values({m, k}), values({k, n}), {values({n}), values({m, n})}, is_cut(m, n));
  }
}

TEST(Epilogues, KeepWhatTheBackwardPassReads) {
  expect_same(
      [](const Array& product, std::span<const Array> x) {
        const Array before = product + x[0];
        return Arrays{before, jax::nn::relu(before), product};
      },
      values({1900, 40}), values({40, 600}), {values({600})}, 1);
}

TEST(Epilogues, OfRows) {
  expect_same([](const Array& product, std::span<const Array>) { return Arrays{jax::nn::softmax(product)}; },
              values({2800, 24}), values({24, 500}), {}, 1);
  expect_same([](const Array& product, std::span<const Array>) { return Arrays{jax::nn::softmax(product)}; },
              values({70, 170, 24}, DType::bfloat16), values({70, 24, 90}, DType::bfloat16), {}, 1, 0.1);
}

TEST(Epilogues, OfBatches) {
  for (DType dtype : {DType::float32, DType::float64, DType::bfloat16, DType::float16}) {
    expect_same(
        [](const Array& product, std::span<const Array> x) {
          return Arrays{product * lax::convert_element_type(Array(0.125f), product.dtype()) + x[0]};
        },
        values({96, 66, 24}, dtype), values({96, 24, 90}, dtype), {values({66, 90}, dtype)}, bits(dtype) == 16 ? 1 : 0,
        bits(dtype) == 16 ? 0.1 : 1e-3);
  }
}

TEST(Epilogues, OfResultsThatAreRoundedFirst) {
  expect_same([](const Array& product, std::span<const Array> x) { return Arrays{jax::nn::gelu(product + x[0])}; },
              values({3500, 64}, DType::bfloat16), values({64, 700}, DType::bfloat16), {values({700}, DType::bfloat16)},
              1, 0.1);
}

TEST(Epilogues, NotWhereRowsAreReadElsewhere) {
  const Array lhs = values({1100, 20}), rhs = values({20, 1100});
  expect_same([](const Array& product, std::span<const Array>) { return Arrays{product + lax::rev(product, {0})}; },
              lhs, rhs, {}, 0);
  expect_same(
      [](const Array& product, std::span<const Array>) {
        return Arrays{product + lax::transpose(product, {1, 0})};
      },
      lhs, rhs, {}, 0);
  expect_same(
      [](const Array& product, std::span<const Array>) { return Arrays{lax::reduce_sum(product, {.axes = {0}})}; }, lhs,
      rhs, {}, 0, 0.05);
  expect_same(
      [](const Array& product, std::span<const Array>) {
        return Arrays{lax::slice(product, {1, 0}, {1100, 1100}) * 2.0f};
      },
      lhs, rhs, {}, 0);
}

TEST(Epilogues, OfAnOperandThatIsUpdatedWaitForTheProduct) {
  // The update may reuse the memory of the donated x, which the matmul reads until it ends.
  const Arrays inputs = {values({1100, 1100}), values({1100, 1100})};
  const Program program =
      program_of([](std::span<const Array> x) { return Arrays{x[0] - numpy::matmul(x[0], x[1]) * 0.001f}; }, inputs);
  EXPECT_EQ(epilogues(program, {true, false}), 0u);
  EXPECT_EQ(epilogues(program), 1u);
  const Arrays want = executed("reference", program, inputs);
  Arrays given = {lax::copy(inputs[0]), inputs[1]};
  const std::vector<bool> donated = {true, false};
  const Arrays got = backend("cpu").compile_donating(program, donated)->execute(given, donated);
  EXPECT_EQ(random_programs::difference(got, want, {1e-3}), "");
}

TEST(Epilogues, OfRandomChains) {
  std::mt19937 random(7);
  auto below = [&](int count) { return static_cast<int64_t>(random() % static_cast<unsigned>(count)); };
  for (int round = 0; round < 12; ++round) {
    const int64_t m = 161 + below(4000), k = 1 + below(60), n = 16 + below(1200);
    std::vector<int64_t> steps;
    for (int64_t i = 0; i < 1 + below(6); ++i) steps.push_back(below(7));
    const bool both = below(2) == 0;
    expect_same(
        [&](const Array& product, std::span<const Array> x) {
          Array now = product;
          for (int64_t step : steps) {
            if (step == 0) now = now + x[0];
            if (step == 1) now = now * x[1];
            if (step == 2) now = lax::tanh(now);
            if (step == 3) now = jax::nn::relu(now) + product;
            if (step == 4) now = numpy::where(now > x[2], now, now * 0.1f);
            if (step == 5) now = now * 0.5f - 1.0f;
            if (step == 6)
              now = lax::convert_element_type(lax::convert_element_type(now, DType::bfloat16), DType::float32);
          }
          return both ? Arrays{now, product} : Arrays{now};
        },
        values({m, k}), values({k, n}), {values({n}), values({m, 1}), values({m, n})}, is_cut(m, n), 0.05);
  }
}

}  // namespace
}  // namespace capibara::cpu
