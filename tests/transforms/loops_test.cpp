// Derivatives of nested loops.
#include "transforms/expect.h"

using capibara::Array;
using capibara::test::expect_near;
namespace jax = capibara::jax;
namespace lax = capibara::jax::lax;

namespace {

// The product of all factors in the loops, which do not depend on x.
TEST(Linearize, TakesALoopInALoop) {
  using State = std::tuple<Array, Array, Array>;
  auto f = [](const Array& x) {
    auto inner = [](const State& state) {
      return lax::while_loop([&](const State& own) { return lax::lt(std::get<1>(own), std::get<2>(state) * 2.0f); },
                             [](const State& own) {
                               const auto& [a, factor, steps] = own;
                               return State(a * factor, factor + 1.0f, steps);
                             },
                             state);
    };
    const State result = lax::while_loop([](const State& state) { return lax::lt(std::get<2>(state), Array(3.0f)); },
                                         [&](const State& state) {
                                           const auto [a, factor, steps] = inner(state);
                                           return State(a, factor, steps + 1.0f);
                                         },
                                         State(x, Array(0.5f), Array(1.0f)));
    return std::get<0>(result);
  };
  auto [y, push] = jax::linearize(f, Array(1.3f));
  expect_near(push(Array(1.0f)), {0.5 * 1.5 * 2.5 * 3.5}, {});
  expect_near(y, {1.3 * 0.5 * 1.5 * 2.5 * 3.5}, {});
}

}  // namespace
