// The form of programs on their way to machine code: the number of regions, and where their values are stored.
#include <capibara/control.h>
#include <capibara/lax.h>
#include <capibara/nn.h>
#include <capibara/numpy.h>
#include <capibara/transforms.h>

#include <gtest/gtest.h>

#include "backends/cpu/driver/lower.h"
#include "compiler/optimise/pipeline.h"
#include "program/trace/stage.h"

namespace capibara::cpu {
namespace {

namespace lax = jax::lax;
namespace numpy = jax::numpy;

ArrayType f32(Shape shape) {
  ArrayType type;
  type.shape = std::move(shape);
  return type;
}

using Maker = std::function<Array(std::span<const Array>)>;

Lowered lowered(const Maker& function, const Types& types) {
  const FlatFunction flat = [&](std::span<const Array> inputs) { return Arrays{function(inputs)}; };
  return lower_to_loops(optimise(stage(flat, types, "f").program));
}

template <class T>
int count(const Block& block) {
  int sum = 0;
  for (const Statement& statement : block) {
    sum += std::holds_alternative<T>(statement.what);
    if (const auto* loop = std::get_if<For>(&statement.what)) sum += count<T>(loop->body);
    if (const auto* loop = std::get_if<While>(&statement.what)) sum += count<T>(loop->condition) + count<T>(loop->body);
    if (const auto* branch = std::get_if<Branch>(&statement.what)) sum += count<T>(branch->yes) + count<T>(branch->no);
  }
  return sum;
}

int regions_run(const Lowered& program) { return count<Invoke>(program.module.functions[0].body); }
int kernels_run(const Lowered& program) { return count<Host>(program.module.functions[0].body); }

TEST(Fusion, AChainIsOneRegionWithoutMemoryOfItsOwn) {
  const Lowered program =
      lowered([](std::span<const Array> x) { return lax::tanh(x[0] * x[1] + 1.0f) - lax::exp(x[0]); },
              {f32({100, 70}), f32({100, 70})});
  EXPECT_EQ(regions_run(program), 1);
  EXPECT_EQ(kernels_run(program), 0);
  EXPECT_EQ(program.arena_bytes, 0);
  // Rows contiguous in memory are one loop.
  EXPECT_EQ(program.module.functions[1].extent, 7000);
}

TEST(Fusion, SoftmaxIsOnePassPerRow) {
  const Lowered program = lowered([](std::span<const Array> x) { return jax::nn::softmax(x[0]); }, {f32({50, 300})});
  EXPECT_EQ(regions_run(program), 1);
  EXPECT_EQ(program.arena_bytes, 0);
  EXPECT_EQ(program.module.functions[1].extent, 50);
}

TEST(Fusion, LayerNormIsOnePassPerRow) {
  const Lowered program = lowered(
      [](std::span<const Array> x) {
        const Array centred = x[0] - numpy::mean(x[0], {.axis = -1, .keepdims = true});
        const Array variance = numpy::mean(centred * centred, {.axis = -1, .keepdims = true});
        return centred * lax::rsqrt(variance + 1e-5f) * x[1];
      },
      {f32({50, 300}), f32({300})});
  EXPECT_EQ(regions_run(program), 1);
  EXPECT_EQ(program.arena_bytes, 0);
}

TEST(Fusion, BroadcastsAreNeverStored) {
  const Lowered program = lowered(
      [](std::span<const Array> x) {
        const Array wide = lax::broadcast_in_dim(x[1], {200, 100}, {1});
        return lax::concatenate({lax::exp(x[0] + wide), numpy::matmul(lax::sin(x[0]) * wide, x[2])}, 1);
      },
      {f32({200, 100}), f32({100}), f32({100, 90})});
  EXPECT_LE(program.arena_bytes, 200 * 100 * 4 * 2 + 4096);
}

TEST(Fusion, ALoopOfNumbersRunsInRegisters) {
  const Lowered program = lowered(
      [](std::span<const Array> x) {
        return lax::fori_loop(
            0, 100, [](Array, Array carry) { return carry * 0.5f + 1.0f; }, x[0]);
      },
      {f32({})});
  EXPECT_EQ(regions_run(program), 1);
  EXPECT_EQ(program.arena_bytes, 0);
  const Block& body = program.module.functions[1].body;
  EXPECT_EQ(count<For>(body) + count<While>(body), 1);
}

TEST(Memory, AnUpdatedCarryHasOneBuffer) {
  const int64_t size = 100000;
  const Lowered program = lowered(
      [](std::span<const Array> x) {
        return lax::fori_loop(
            0, 10,
            [](Array i, Array carry) {
              return lax::dynamic_update_slice(
                  carry, lax::broadcast(lax::convert_element_type(i, DType::float32), {100}), {i});
            },
            x[0]);
      },
      {f32({size})});
  EXPECT_LT(program.arena_bytes, 10000);
}

TEST(Memory, ACarryIsUpdatedInPlaceFromAnotherOfItsRows) {
  const Lowered program = lowered(
      [](std::span<const Array> x) {
        return lax::fori_loop(
            0, 10,
            [](Array i, Array carry) {
              const Array row = lax::dynamic_slice(carry, {i, numpy::zeros_like(i)}, {1, 300});
              return lax::dynamic_update_slice(carry, row * 0.5f + 1.0f, {i + 1, numpy::zeros_like(i)});
            },
            x[0]);
      },
      {f32({100, 300})});
  EXPECT_LT(program.arena_bytes, 5000);
}

TEST(Memory, ElementwiseCarriesAreUpdatedInPlace) {
  const Lowered program = lowered(
      [](std::span<const Array> x) {
        return lax::fori_loop(
            0, 10, [&](Array, Array carry) { return carry * 0.9f + x[1]; }, x[0]);
      },
      {f32({100000}), f32({100000})});
  EXPECT_LT(program.arena_bytes, 10000);
}

TEST(Memory, ValuesOfDifferentTimesShareSpace) {
  const Lowered program = lowered(
      [](std::span<const Array> x) {
        Array y = x[0];
        for (int i = 0; i < 6; ++i) y = numpy::matmul(y, y);
        return y;
      },
      {f32({100, 100})});
  EXPECT_LE(program.arena_bytes, 2 * (100 * 100 * 4 + 64));
}

}  // namespace
}  // namespace capibara::cpu
