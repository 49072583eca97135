// Loop nests of every form over awkward shapes: column sums, long rows, transpose tiles, random bits; against the
// reference backend, and with the same bits for any number of threads.
#include <capibara/control.h>
#include <capibara/lax.h>
#include <capibara/nn.h>
#include <capibara/numpy.h>
#include <capibara/random.h>
#include <capibara/transforms.h>

#include <gtest/gtest.h>

#include "backends/cpu/driver/lower.h"
#include "backends/cpu/small_programs.h"
#include "compiler/optimise/pipeline.h"
#include "program/trace/stage.h"

namespace capibara::cpu {
namespace {

namespace lax = jax::lax;
namespace numpy = jax::numpy;

TEST(Nests, SumColumnsOfEveryShape) {
  for (const Shape& shape : std::vector<Shape>{
           {5000, 3}, {70001, 1}, {40000, 16}, {300, 1000}, {17, 20000}, {2, 3}, {0, 7}, {7, 0}, {4099, 129}}) {
    expect_as_reference(
        [](std::span<const Array> x) {
          return Arrays{lax::reduce_sum(x[0], {.axes = {0}}), lax::reduce_max(x[0], {.axes = {0}})};
        },
        {values(shape)}, 1e-2);
  }
}

TEST(Nests, UpdateACarryFromItsOtherRows) {
  for (int distance : {0, 1, 3}) {
    expect_as_reference(
        [&](std::span<const Array> x) {
          return Arrays{lax::fori_loop(
              0, 30,
              [&](Array i, Array carry) {
                const Array zero = numpy::zeros_like(i);
                const Array row = lax::dynamic_slice(carry, {i, zero}, {1, 37}),
                            two = lax::dynamic_slice(carry, {i + 4, zero}, {2, 37});
                return lax::dynamic_update_slice(carry, row * 0.5f + lax::slice(two, {1, 0}, {2, 37}),
                                                 {i + distance, zero});
              },
              x[0])};
        },
        {values({40, 37})}, 1e-5);
  }
}

// The loop's constant is a reshape of its carry's initial value: that memory must not be overwritten.
TEST(Nests, KeepTheStartOfACarryThatTheLoopReadsByAnotherName) {
  expect_as_reference(
      [](std::span<const Array> x) {
        const Array start = lax::asinh(x[0]), table = lax::reshape(start, {13, 5});
        const auto [count, carry, seen] =
            lax::while_loop([&](const std::tuple<Array, Array, Array>& state) { return std::get<0>(state) < x[1]; },
                            [&](const std::tuple<Array, Array, Array>& state) {
                              return std::tuple(std::get<0>(state) + 1, lax::full_like(start, 0.0), table);
                            },
                            std::tuple(lax::full_like(x[1], 0), start, lax::full_like(table, 1.0)));
        return Arrays{count, carry, seen};
      },
      {values({65}), lax::convert_element_type(values({}, DType::float32) * 20.0f, DType::int32)}, 1e-6);
}

// The update reads, as a flat array, the same rows that it writes: they must be read first.
TEST(Nests, UpdateAnArrayWithPartsOfItself) {
  expect_as_reference(
      [](std::span<const Array> x) {
        const Array rows = lax::tanh(x[0]);
        const Array part = lax::reshape(lax::slice(lax::reshape(rows, {15000}), {0}, {1840}), {1840, 1});
        return Arrays{lax::dynamic_update_slice(rows, part, {Array(0), Array(2)}) * x[0]};
      },
      {values({5000, 3})}, 1e-6);
}

// The product is computed once for the maximum and again after it: it must be rounded in both, or the difference is
// not 0 at the maximum.
TEST(Nests, RoundProductsThatSeveralReadersCompute) {
  for (float scale : {1e12f, 1e38f}) {
    expect_as_reference(
        [&](std::span<const Array> x) {
          const Array product = x[0] * scale, square = numpy::reshape(lax::square(x[0] * 1e9f), {3, 100, 128});
          return Arrays{jax::nn::softmax(product), product - numpy::max(product, {.axis = 1, .keepdims = true}),
                        square - numpy::max(square, {.axis = 2, .keepdims = true})};
        },
        {values({300, 128}, DType::float32, 4)}, 1e-6);
  }
}

TEST(Nests, ComputeFunctionsOfShortRows) {
  for (DType dtype : {DType::float32, DType::float64, DType::bfloat16}) {
    for (const Shape& shape : std::vector<Shape>{{64, 2}, {512, 3, 3}, {33, 5}, {100, 6}, {9, 7}}) {
      expect_as_reference(
          [&](std::span<const Array> x) {
            const Array spread = lax::broadcast_in_dim(x[1], shape, shape.size() == 3 ? Ints{0, 1} : Ints{0});
            return Arrays{lax::exp(x[0] - spread), lax::tanh(x[0] * spread)};
          },
          {values(shape, dtype), values(Shape(shape.begin(), shape.end() - 1), dtype)},
          dtype == DType::bfloat16 ? 0.1 : 1e-4);
    }
  }
}

TEST(Nests, SumMiddleAndMixedDimensions) {
  for (const Ints& axes : std::vector<Ints>{{1}, {0, 2}, {0, 1}, {0, 1, 2}, {1, 3}, {0, 2, 3}}) {
    expect_as_reference([&](std::span<const Array> x) { return Arrays{lax::reduce_sum(x[0], {.axes = axes})}; },
                        {values({6, 70, 5, 90})}, 1e-2);
  }
}

TEST(Nests, CutLongRowsIntoPieces) {
  for (const Shape& shape : std::vector<Shape>{{1, 200003}, {3, 131072}, {400001}}) {
    expect_as_reference(
        [](std::span<const Array> x) {
          const int64_t last = static_cast<int64_t>(x[0].type().rank()) - 1;
          return Arrays{lax::reduce_sum(x[0], {.axes = {last}}), lax::reduce_max(lax::exp(x[0]), {.axes = {last}}),
                        x[0] * 2.0f};
        },
        {values(shape)}, 5e-2);
  }
}

TEST(Nests, SumNarrowTypesInSingles) {
  for (DType dtype : {DType::bfloat16, DType::float16, DType::int8, DType::complex64}) {
    expect_as_reference([](std::span<const Array> x) { return Arrays{lax::reduce_sum(x[0], {.axes = {0}})}; },
                        {values({400, 90}, dtype)}, dtype == DType::int8 ? 0 : 0.3);
  }
}

TEST(Nests, TransposeOperandsInTiles) {
  for (const Shape& shape : std::vector<Shape>{{100, 130}, {64, 64}, {9, 500}, {67, 8}, {1000, 3}}) {
    const Shape transposed = {shape[1], shape[0]};
    expect_as_reference(
        [](std::span<const Array> x) {
          return Arrays{lax::transpose(x[0], {1, 0}) + x[1], lax::transpose(lax::exp(x[0]), {1, 0})};
        },
        {values(shape), values(transposed)}, 1e-5);
  }
  expect_as_reference(
      [](std::span<const Array> x) {
        return Arrays{lax::transpose(x[0], {2, 0, 1}) * 3.0f, lax::transpose(x[0], {0, 2, 1})};
      },
      {values({5, 70, 90})}, 1e-5);
  for (DType dtype : {DType::bool_, DType::int8, DType::bfloat16, DType::float64, DType::complex64}) {
    expect_as_reference(
        [](std::span<const Array> x) {
          return Arrays{lax::transpose(x[0], {1, 0})};
        },
        {values({100, 77}, dtype)}, 0);
  }
}

TEST(Nests, NormaliseRowsOfTransposedArrays) {
  expect_as_reference(
      [](std::span<const Array> x) {
        return Arrays{jax::nn::softmax(lax::transpose(x[0], {1, 0}))};
      },
      {values({90, 120})}, 1e-5);
}

TEST(Nests, GatherGradientsOfLayerNormInOnePass) {
  const Maker gradients = [](std::span<const Array> x) {
    const Array centred = x[0] - numpy::mean(x[0], {.axis = -1, .keepdims = true});
    const Array scale = lax::rsqrt(numpy::mean(centred * centred, {.axis = -1, .keepdims = true}) + 1e-5f);
    const Array wanted = x[1] * x[2];
    const Array inner = lax::reduce_sum(wanted * centred, {.axes = {1}});
    const Array moved = wanted * scale - centred * lax::reshape(inner, {x[0].shape()[0], 1}) * scale;
    return Arrays{moved, lax::reduce_sum(x[1] * centred * scale, {.axes = {0}}), lax::reduce_sum(x[1], {.axes = {0}})};
  };
  expect_as_reference(gradients, {values({300, 257}), values({300, 257}), values({1, 257})}, 1e-2);
  const FlatFunction flat = [&](std::span<const Array> given) { return gradients(given); };
  const Types types = {values({300, 257}).type(), values({300, 257}).type(), values({1, 257}).type()};
  // One nest over all rows, and one that combines its partial sums.
  EXPECT_LE(lower_to_loops(optimise(stage(flat, types, "f").program)).module.functions.size(), 3u);
}

// The last product of exp may be fused with the sum; a huge argument is infinite before that.
TEST(Nests, AddToExponentialsThatOverflow) {
  const Array huge = values({33}, DType::float32, 3e38f);
  expect_as_reference([](std::span<const Array> x) { return Arrays{lax::exp(-x[0]) + x[0]}; }, {huge}, 1e-6);
}

TEST(Nests, ComputeRandomBitsWhereTheyAreRead) {
  const Array key = jax::random::key(7);
  for (const Shape& shape : std::vector<Shape>{{}, {5}, {1000}, {33, 70}}) {
    expect_as_reference(
        [&](std::span<const Array> x) {
          return Arrays{jax::random::bits(x[0], {.shape = shape}),
                        jax::random::bits(x[0], {.shape = shape, .dtype = DType::uint8})};
        },
        {key}, 0);
  }
}

}  // namespace
}  // namespace capibara::cpu
