// Arrays and programs on a plugin's device: residence, donation, errors, callbacks, caches.
#include "backends/pjrt/on_plugin.h"

#include "core/runtime/disk_cache.h"

#include <capibara/callback.h>
#include <capibara/control.h>
#include <capibara/linalg.h>
#include <capibara/random.h>

#include <cstdlib>

namespace capibara::pjrt {
namespace {

namespace jnp = jax::numpy;
namespace lax = jax::lax;

using Execution = OnPlugin;

TEST_F(Execution, OfAJittedSumGivesItsValue) {
  const auto f = jax::jit([](const Array& x, const Array& y) { return x + 2 * y; });
  EXPECT_EQ(f(array<float>({1, 2}), array<float>({10, 20})).to_vector<float>(), (std::vector<float>{21, 42}));
}

TEST_F(Execution, LeavesResultsOnTheDevice) {
  const Array y = jax::jit([](const Array& x) { return x + 1; })(array<float>({1, 2, 3}));
  EXPECT_EQ(y.device().platform, "xla_cpu");
  const auto memory = std::dynamic_pointer_cast<DeviceBuffer>(y.buffer().device_memory());
  ASSERT_TRUE(memory);
  const Array z = jax::jit([](const Array& x) { return x * 2; })(y);
  EXPECT_EQ(std::dynamic_pointer_cast<DeviceBuffer>(y.buffer().device_memory()),
            memory);  // it was not moved for the call
  EXPECT_EQ(z.to_vector<float>(), (std::vector<float>{4, 6, 8}));
}

TEST_F(Execution, CopiesAnArrayOfTheHostOnce) {
  const Array x = array<float>({1, 2, 3});
  const auto f = jax::jit([](const Array& v) { return v * 3; });
  f(x);
  const auto copy = x.buffer().device_memory();
  ASSERT_TRUE(copy);
  f(x);
  EXPECT_EQ(x.buffer().device_memory(), copy);
}

TEST_F(Execution, ReturnsBeforeTheProgramHasEnded) {
  // A loop of about a second: it cannot be finished when the call returns.
  const auto f = jax::jit([](const Array& x) {
    return lax::fori_loop(
        0, 400, [](const Array&, const Array& v) { return jnp::tanh(jnp::matmul(v, v)); }, x);
  });
  const Array x = jnp::ones({256, 256}) * 0.01;
  f(x).block_until_ready();
  const Array y = f(x);
  EXPECT_FALSE(y.buffer().is_ready());
  y.block_until_ready();
  EXPECT_TRUE(y.buffer().is_ready());
}

TEST_F(Execution, DeletesDonatedInputs) {
  const auto f = jax::jit([](const Array& x) { return x + 1; }, {.donate_argnums = {0}});
  const Array x = jnp::arange(4.0);
  const Array copy = x + 0;
  EXPECT_EQ(f(x).to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_TRUE(x.is_deleted());
  EXPECT_THROW(x.to_vector<float>(), RuntimeError);
  EXPECT_EQ(copy.to_vector<float>(), (std::vector<float>{0, 1, 2, 3}));
}

TEST_F(Execution, WorksOperationByOperation) {
  const Array x = array<float>({4, 9});
  EXPECT_EQ(jnp::sqrt(x).to_vector<float>(), (std::vector<float>{2, 3}));
  EXPECT_EQ((x[Index(1)] + 1).item<float>(), 10);
}

TEST_F(Execution, KeepsRandomBitsAndKeys) {
  const auto draw = [] { return jax::random::normal(jax::random::key(3), {.shape = Shape{5}}); };
  const std::vector<float> got = jax::jit(draw)().to_vector<float>();
  Config settings = config();
  settings.platform = "reference";
  ConfigScope scope(settings);
  const std::vector<float> want = draw().to_vector<float>();
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5);
}

TEST_F(Execution, CallsTheHostForDecompositions) {
  const Array a = array<float>({4, 1, 0, 1, 3, 1, 0, 1, 2}, Shape{3, 3});
  const auto f = jax::jit([](const Array& x) { return jnp::linalg::inv(x); });
  const std::vector<float> product = jnp::matmul(f(a), a).to_vector<float>();
  for (std::size_t i = 0; i < 9; ++i) EXPECT_NEAR(product[i], i % 4 == 0 ? 1 : 0, 1e-5);
}

TEST_F(Execution, CallsBackInTheOrderOfTheProgram) {
  std::vector<float> seen;
  const auto f = jax::jit([&](const Array& x) {
    auto note = [&](const std::vector<Array>& values) {
      seen.push_back(values[0].item<float>());
      return std::vector<Array>{};
    };
    jax::io_callback(note, {}, {x}, {.ordered = true});
    const Array y = lax::fori_loop(
        0, 3,
        [&](const Array&, const Array& v) {
          jax::io_callback(note, {}, {v}, {.ordered = true});
          return v * 2;
        },
        x + 1);
    jax::io_callback(note, {}, {y}, {.ordered = true});
    return y;
  });
  EXPECT_EQ(f(array<float>({1}).reshape({})).item<float>(), 16);
  EXPECT_EQ(seen, (std::vector<float>{1, 2, 4, 8, 16}));
}

TEST_F(Execution, RaisesTheErrorOfACallbackAndGoesOn) {
  const auto f = jax::jit([](const Array& x) {
    return jax::pure_callback(
        [](const std::vector<Array>&) -> std::vector<Array> { throw ValueError("no such value"); }, {x.type()}, {x})[0];
  });
  try {
    f(array<float>({1})).block_until_ready();
    FAIL() << "nothing was raised";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("no such value"), std::string::npos) << error.what();
  }
  EXPECT_EQ((array<float>({1}) + 1).item<float>(), 2);
}

TEST_F(Execution, SurvivesAPlanLargerThanMemory) {
  const auto f = jax::jit(
      [](const Array& x) { return lax::sort(jnp::sin(lax::iota(DType::float32, int64_t{1} << 40) * x))[Index(5)]; });
  EXPECT_THROW(f(Array(2.5f)).block_until_ready(), RuntimeError);
  EXPECT_EQ((array<float>({1}) + 1).item<float>(), 2);
}

TEST_F(Execution, TellsWhatAProgramNeeds) {
  const Program program = jax::make_jaxpr([](const Array& x) { return jnp::matmul(x, x); })(jnp::ones({64, 64}));
  const auto executable = default_backend().compile(program);
  const Loaded* own = loaded(*executable);
  ASSERT_TRUE(own);
  EXPECT_EQ(own->compiled().memory_analysis().argument, 64 * 64 * 4);
  EXPECT_EQ(own->compiled().memory_analysis().output, 64 * 64 * 4);
}

TEST_F(Execution, LoadsSerializedProgramsAndRefusesDamagedOnes) {
  Client& device = client("xla_cpu");
  const Program program = jax::make_jaxpr([](const Array& x) { return x * 5; })(jnp::ones({3}));
  auto made = device.compile(stablehlo_text(program), {}, "test");
  const std::optional<std::string> bytes = made->compiled().serialized();
  if (!bytes) GTEST_SKIP() << "the plugin does not serialize";
  EXPECT_TRUE(device.load(*bytes));
  EXPECT_FALSE(device.load("no program"));
}

TEST_F(Execution, RefusesUnknownSettingsWithoutEnding) {
  setenv("CAPIBARA_XLA_OPTIONS", "xla_no_such_setting=1", 1);
  EXPECT_THROW(jax::jit([](const Array& x) { return x + 77; })(jnp::ones({3})), RuntimeError);
  unsetenv("CAPIBARA_XLA_OPTIONS");
}

TEST(Plugins, MissingSayWhereWasLooked) {
  try {
    choose("rocm");
    GTEST_SKIP() << "this machine has a plugin for ROCm";
  } catch (const RuntimeError& error) {
    EXPECT_NE(std::string(error.what()).find("CAPIBARA_PLUGIN"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("site-packages"), std::string::npos) << error.what();
  }
}

TEST(Plugins, ThatAreNoneAreRefused) {
  EXPECT_THROW(Plugin("xla_cpu", "/nonexistent/plugin.so"), RuntimeError);
  EXPECT_THROW(Plugin("xla_cpu", "libm.so.6"), RuntimeError);
}

TEST(CompileOptions, AreTheBytesOfTheirMessages) {
  auto bytes = [](std::initializer_list<int> list) {
    std::string text;
    for (int value : list) text += static_cast<char>(value);
    return text;
  };
  EXPECT_EQ(CompileOptions{}.serialize(), bytes({0x1a, 0x0f, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                                 0x01, 0x20, 0x01, 0x28, 0x01}));
  CompileOptions options;
  options.overrides["a"] = int64_t{300};
  EXPECT_EQ(options.serialize().substr(17), bytes({0x3a, 0x08, 0x0a, 0x01, 'a', 0x12, 0x03, 0x18, 0xac, 0x02}));
}

}  // namespace
}  // namespace capibara::pjrt
