// Results of the cpu backend reuse the memory of donated inputs, and of no others.
#include <capibara/control.h>
#include <capibara/lax.h>

#include <gtest/gtest.h>

#include "backends/backend.h"
#include "backends/cpu/generated_code.h"
#include "program/trace/stage.h"

namespace capibara::cpu {
namespace {

constexpr int64_t rows = 300, columns = 257;

using Flat = std::function<Arrays(std::span<const Array>)>;

Array copy_of(const Array& array) {
  const std::size_t bytes = array.buffer().size();
  Buffer buffer = Buffer::allocate(bytes);
  std::memcpy(buffer.mutable_data(), array.raw_data(), bytes);
  return Array::from_buffer(array.type(), buffer);
}

// Runs a function on the cpu backend with its first `count` inputs donated, and on the reference backend without.
struct Donating {
  Arrays got, want;
  const std::byte* donated = nullptr;  // address of the donated memory
  Array input;

  explicit Donating(const Flat& function, Arrays inputs, std::size_t count = 1) {
    Types types;
    for (const Array& each : inputs) types.push_back(each.type());
    const Program program = stage(function, types, "f").program;
    std::vector<bool> none(inputs.size(), false), first = none;
    for (std::size_t i = 0; i < count; ++i) first[i] = true;
    Arrays copies;  // only this test may hold the donated memory
    for (const Array& each : inputs) copies.push_back(copy_of(each));
    want = backend("reference").compile(program)->execute(copies, none);
    input = inputs[0];
    donated = input.raw_data();
    got = backend("cpu").compile_donating(program, first)->execute(inputs, first);
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].to_vector<float>(), want[i].to_vector<float>()) << "output " << i;
    }
  }
  bool in_place() const { return got[0].raw_data() == donated; }
};

Array numbers(float scale) {
  Buffer buffer = Buffer::allocate(rows * columns * sizeof(float));
  auto* values = reinterpret_cast<float*>(buffer.mutable_data());
  for (int64_t i = 0; i < rows * columns; ++i) values[i] = scale * static_cast<float>(i % 101 - 50);
  return Array::from_buffer({{rows, columns}, DType::float32, false, false, {}}, buffer);
}

TEST(Donation, AnElementwiseUpdateIsWrittenOverItsInput) {
  NEEDS_COMPILER();
  const Donating run([](std::span<const Array> in) { return Arrays{in[0] - in[1] * 2}; }, {numbers(1), numbers(0.5)});
  EXPECT_TRUE(run.in_place());
  EXPECT_THROW(run.input.raw_data(), RuntimeError);
}

TEST(Donation, AnInputThatIsReadElsewhereStaysWhole) {
  NEEDS_COMPILER();
  Donating(
      [](std::span<const Array> in) {
        return Arrays{in[0] * 2, jax::lax::rev(in[0], {1}) + in[1]};
      },
      {numbers(1), numbers(0.5)});
  Donating([](std::span<const Array> in) { return Arrays{jax::lax::rev(in[0], {0}) + in[1]}; },
           {numbers(1), numbers(0.5)});
  Donating([](std::span<const Array> in) { return Arrays{in[0] + jax::lax::rev(in[0], {1})}; },
           {numbers(1), numbers(0.5)});
  Donating(
      [](std::span<const Array> in) {
        return Arrays{jax::lax::reduce_sum(jax::lax::rev(in[0], {0}) * in[1], {{0, 1}}) + in[0]};
      },
      {numbers(1), numbers(0.5)});
}

TEST(Donation, TwoResultsOfOneInputTakeItOnce) {
  NEEDS_COMPILER();
  const Donating run(
      [](std::span<const Array> in) {
        return Arrays{in[0] + 1, in[0] * 3};
      },
      {numbers(1), numbers(0.5)});
  EXPECT_NE(run.got[0].raw_data(), run.got[1].raw_data());
}

TEST(Donation, SeveralInputsAreDonatedAtOnce) {
  NEEDS_COMPILER();
  const Flat update = [](std::span<const Array> in) { return Arrays{in[0] - in[2] * 2, in[1] * 0.5f + in[2]}; };
  const Donating run(update, {numbers(1), numbers(2), numbers(0.5)}, 2);
  EXPECT_TRUE(run.in_place());
}

TEST(Donation, MemoryThatOthersHoldIsCopied) {
  NEEDS_COMPILER();
  const Array x = numbers(1);
  const Buffer held = x.buffer();
  const Donating shared([](std::span<const Array> in) { return Arrays{in[0] + in[1]}; }, {x, numbers(0.5)});
  EXPECT_FALSE(shared.in_place());
  const Array twice = numbers(2);
  const Donating both([](std::span<const Array> in) { return Arrays{in[0] * 2 + jax::lax::rev(in[1], {0})}; },
                      {twice, twice});
  EXPECT_FALSE(both.in_place());
}

TEST(Donation, AScanUpdatesItsDonatedCarryInPlace) {
  NEEDS_COMPILER();
  const Donating run(
      [](std::span<const Array> in) {
        auto step = [](const Array& carry, const Array& i) {
          const Array row = jax::lax::dynamic_slice(carry, {i, Array(0)}, {1, columns});
          return std::pair(jax::lax::dynamic_update_slice(carry, row * 2, {i, Array(0)}), Array(0.0f));
        };
        auto [last, unused] = jax::lax::scan(step, in[0], jax::lax::iota(DType::int32, 5));
        return Arrays{last};
      },
      {numbers(1)});
  EXPECT_TRUE(run.in_place());
}

}  // namespace
}  // namespace capibara::cpu
