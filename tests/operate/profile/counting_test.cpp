// Counting of work: operations of programs and of calls outside jit, once each, by the rate of their type.
#include <capibara/control.h>
#include <capibara/jit.h>
#include <capibara/lax.h>
#include <capibara/numpy.h>

#include <gtest/gtest.h>

#include "core/runtime/counters.h"

namespace capibara {
namespace {

namespace lax = jax::lax;
namespace jnp = jax::numpy;

template <class F>
FlopsByType counted(const F& work) {
  const FlopsByType before = counted_flops();
  work();
  FlopsByType flops = counted_flops();
  for (std::size_t type = 0; type < flops.size(); ++type) flops[type] -= before[type];
  return flops;
}

FlopsByType only(RateType type, uint64_t flops) {
  FlopsByType expected{};
  expected[static_cast<std::size_t>(type)] = flops;
  return expected;
}

TEST(CountedWork, IsThatOfOperationsAndPrograms) {
  const Array x = jnp::ones({8, 16}), square = jnp::ones({16, 16});
  EXPECT_EQ(counted([&] { lax::dot(x, square); }), only(RateType::float32, 2 * 8 * 16 * 16));
  EXPECT_EQ(counted([&] { lax::add(x, x); }), only(RateType::float32, 8 * 16));
  EXPECT_EQ(counted([&] { lax::transpose(x, {1, 0}); }), FlopsByType{});
  const Array half = lax::convert_element_type(square, DType::bfloat16);
  EXPECT_EQ(counted([&] { lax::dot(half, half); }), only(RateType::bfloat16, 2 * 16 * 16 * 16));
  const auto f = jax::jit([](Array a) { return lax::dot(a, a); });
  f(square);
  EXPECT_EQ(counted([&] { f(square).block_until_ready(); }), only(RateType::float32, 2 * 16 * 16 * 16));
}

TEST(CountedWork, PartsOfWhatIsCountedDoNotCountAgain) {
  const Array square = jnp::ones({16, 16});
  EXPECT_EQ(counted([&] {
              const CountedWork whole;
              lax::dot(square, square);
            }),
            FlopsByType{});
  EXPECT_EQ(counted([&] {
              lax::fori_loop(
                  0, 5, [&](Array, Array carry) { return lax::dot(carry, square); }, square);
            }),
            only(RateType::float32, 5 * (2 * 16 * 16 * 16 + 1)));  // and the loop's counter
}

}  // namespace
}  // namespace capibara
