// Long and repetitive programs: linear time, no deep recursion, repeated calls stored once.
#include <capibara/capibara.h>

#include <gtest/gtest.h>

#include <pthread.h>

#include <functional>
#include <string>

namespace {

using capibara::Array;
using capibara::Program;
namespace jax = capibara::jax;
namespace lax = capibara::jax::lax;

constexpr int million = 1000000;

Array chain(Array x) {
  for (int i = 0; i < million; ++i) x = lax::add(x, Array(1.0f));
  return x;
}

// Runs on a thread with a small stack, on which recursion over the equations would overflow.
void with_small_stack(std::function<void()> body) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 512 * 1024), 0);
  pthread_t thread;
  auto run = [](void* f) -> void* {
    (*static_cast<std::function<void()>*>(f))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &body), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++found;
  return found;
}

TEST(Chain, OfAMillionAdditionsIsTracedAndFreed) {
  with_small_stack([] {
    Program program = jax::make_jaxpr(chain)(Array(1.0f));
    EXPECT_EQ(program.equations().size(), static_cast<std::size_t>(million));
  });
}

TEST(Chain, OfAMillionAdditionsIsDifferentiated) {
  with_small_stack([] { EXPECT_EQ(jax::grad(chain)(Array(1.0f)).item<float>(), 1.0f); });
}

TEST(Chain, OfAMillionAdditionsIsCompiledAndRun) {
  with_small_stack([] { EXPECT_EQ(jax::jit(chain)(Array(0.0f)).item<float>(), 1e6f); });
}

TEST(RepeatedCall, OfOneLayerIsOneFunctionInTheText) {
  auto layer = jax::jit([](Array x, Array w) { return lax::tanh(lax::dot(x, w)); }, {.name = "layer"});
  auto network = [&](Array x, Array w) {
    for (int i = 0; i < 48; ++i) x = layer(x, w);
    return x;
  };
  Array x = lax::full({2, 3}, 0.5f), w = lax::full({3, 3}, 0.1f);
  EXPECT_EQ(count(jax::jit(network).lower(x, w).as_text(), "func.func private"), 1);
  EXPECT_EQ(count(jax::make_jaxpr(network)(x, w).to_string(), "tanh"), 1);

  auto loss = [&](Array a, Array b) { return lax::reduce_sum(network(a, b), {.axes = {0, 1}}); };
  std::string gradient = jax::make_jaxpr(jax::grad(loss))(x, w).to_string();
  EXPECT_EQ(count(gradient, "let layer"), 2);  // one forward with residuals, one backward
}

}  // namespace
