// Growth: ten times the operations take about ten times as long, in every stage a program goes through.
#include <capibara/capibara.h>

#include "program/derive.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <chrono>
#include <functional>
#include <string>

namespace {

using capibara::Array;
using capibara::Program;
namespace jax = capibara::jax;
namespace lax = capibara::jax::lax;

// Every addition reads x, so that a million cotangents meet in one place.
auto sums(int length) {
  return [length](Array x) {
    Array sum = x;
    for (int i = 0; i < length; ++i) sum = lax::add(sum, x);
    return sum;
  };
}

double seconds(const std::function<void()>& work) {
  auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A quadratic step would take a hundred times as long; a busy machine and cache misses may take three times.
void expect_linear(const std::function<void(int)>& work, int length) {
  double small = seconds([&] { work(length / 10); }), large = seconds([&] { work(length); });
  EXPECT_LT(large, 30 * std::max(small, 0.01)) << small << " s for " << length / 10 << ", " << large << " s for " << length;
}

TEST(Growth, OfTracingIsLinear) {
  expect_linear([](int n) { EXPECT_EQ(jax::make_jaxpr(sums(n))(Array(1.0f)).equations().size(), static_cast<std::size_t>(n)); }, 1000000);
}

TEST(Growth, OfGradientsIsLinear) {
  expect_linear([](int n) { EXPECT_EQ(jax::grad(sums(n))(Array(1.0f)).item<float>(), static_cast<float>(n + 1)); }, 1000000);
}

TEST(Growth, OfVerificationAndLoweringIsLinear) {
  expect_linear(
      [](int n) {
        Program program = jax::make_jaxpr(sums(n))(Array(1.0f));
        verify(program);
        EXPECT_EQ(capibara::lower(program).equations().size(), static_cast<std::size_t>(n));
      },
      300000);
}

TEST(Growth, OfTextIsLinear) {
  expect_linear(
      [](int n) {
        Program program = jax::make_jaxpr(sums(n))(Array(1.0f));
        EXPECT_EQ(capibara::from_stablehlo(capibara::to_stablehlo(program)).equations().size(), static_cast<std::size_t>(n));
        EXPECT_GT(program.to_string().size(), static_cast<std::size_t>(n));
      },
      100000);
}

TEST(Growth, OfDerivedProgramsIsLinear) {
  expect_linear(
      [](int n) {
        Program program = jax::make_jaxpr(sums(n))(Array(1.0f));
        Program batched = capibara::batch_program(program, {"", 2}, {true}).program;
        Program derived = capibara::jvp_program(batched, {true}).program;
        EXPECT_GE(derived.equations().size(), static_cast<std::size_t>(2 * n));
      },
      200000);
}

// 256 KiB hold the stack of a hundred thousand operations only where nothing recurses over them.
TEST(Growth, DoesNotReachTheStack) {
  std::function<void()> work = [] {
    EXPECT_EQ(jax::grad(jax::jit(sums(100000)))(Array(1.0f)).item<float>(), 100001.0f);
    Program program = jax::make_jaxpr(sums(100000))(Array(1.0f));
    Program batched = capibara::batch_program(program, {"", 2}, {true}).program;
    EXPECT_FALSE(capibara::jvp_program(batched, {true}).program.to_string().empty());
    EXPECT_EQ(capibara::from_stablehlo(capibara::to_stablehlo(program)).equations().size(), 100000u);
  };
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 * 1024), 0);
  pthread_t thread;
  auto run = [](void* body) -> void* {
    (*static_cast<std::function<void()>*>(body))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &work), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

// All calls hold one program, and so do the calls that its derivative makes.
TEST(Growth, RepeatedCallsHoldOneProgram) {
  auto layer = jax::jit([](Array h, Array weights) { return lax::tanh(lax::dot(h, weights)); }, {.name = "layer"});
  auto network = [&](Array x, Array w) {
    for (int i = 0; i < 48; ++i) x = layer(x, w);
    return x;
  };
  auto loss = [&](Array x, Array w) { return lax::reduce_sum(network(x, w), {.axes = {0, 1}}); };
  Array x = lax::full({2, 3}, 0.5f), w = lax::full({3, 3}, 0.1f);
  Program program = jax::make_jaxpr(network)(x, w);
  ASSERT_EQ(program.equations().size(), 48u);
  for (const capibara::Equation& equation : program.equations()) {
    EXPECT_EQ(equation.attrs.program("jaxpr").identity(), program.equations()[0].attrs.program("jaxpr").identity());
  }
  std::string text = jax::jit(jax::grad<0, 1>(loss)).lower(x, w).as_text();
  std::size_t functions = 0;
  for (std::size_t at = 0; (at = text.find("func.func private", at)) != std::string::npos; ++at) ++functions;
  EXPECT_LE(functions, 4u);
}

}  // namespace
