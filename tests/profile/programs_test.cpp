// Profiles of compiled programs: slots that sum to the time, and hot lines that are found.
#include <capibara/capibara.h>
#include <capibara/profile.h>

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>

#include "backends/backend.h"
#include "backends/cpu/execution/backend.h"
#include "backends/cpu/execution/compiler.h"
#include "program/source.h"

namespace capibara {
namespace {

namespace jnp = jax::numpy;
namespace lax = jax::lax;
namespace profile = capibara::profile;

// What is traced in it comes from this line of a file that does not exist.
class Line {
 public:
  explicit Line(int number) : scope_(intern(SourceInfo{"", "model.py", number, nullptr})) {}

 private:
  SourceScope scope_;
};

Array filled(const Shape& shape, double value = 0.5) { return lax::full(shape, value, DType::float32); }

template <class F>
profile::Profile profiled(const F& work) {
  work();  // compiles
  profile::start();
  work();  // compiles with marks
  profile::stop();
  profile::start();
  work();
  return profile::stop();
}

// The share of the time that a line is charged with.
double share_of_line(const profile::Profile& taken, int line) {
  double all = 0, own = 0;
  for (const profile::Slot& slot : taken.slots) {
    all += static_cast<double>(slot.nanoseconds);
    if (slot.file == "model.py" && slot.line == line) own += static_cast<double>(slot.nanoseconds);
  }
  return all > 0 ? own / all : 0;
}

struct Native : testing::Test {
  void SetUp() override {
    if (!cpu::has_compiler() || default_backend().name() != "cpu") GTEST_SKIP() << "needs the native compiler";
  }
};

using ProfiledPrograms = Native;

TEST_F(ProfiledPrograms, SlotsSumToTheTimeOfTheirProgramAndToTheTimeOutside) {
  const Array x = filled({512, 512}, 0.01);
  const auto f = jax::jit([](Array a) {
    for (int i = 0; i < 6; ++i) a = jnp::tanh(lax::dot(a, a)) + jnp::sum(a);
    return a;
  });
  double outside = 0;
  const profile::Profile taken = profiled([&] {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 5; ++i) f(x).block_until_ready();
    outside = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
  });
  int64_t slots = 0, operations = 0, executions = 0, runs = 0;
  for (const profile::Slot& slot : taken.slots) slots += slot.nanoseconds;
  for (const profile::Event& event : taken.events) {
    if (event.kind == profile::EventKind::operation) operations += event.duration;
    if (event.kind == profile::EventKind::module_execution) executions += event.duration, ++runs;
  }
  EXPECT_EQ(runs, 5);
  EXPECT_EQ(slots, operations);
  EXPECT_EQ(slots, executions);  // nothing between the marks is lost
  EXPECT_LE(static_cast<double>(slots), outside);
  EXPECT_GE(static_cast<double>(slots), 0.6 * outside);  // the rest is dispatch and waiting, on a machine that may be busy
}

TEST_F(ProfiledPrograms, MatmulsKnowTheirOperationsAndBytes) {
  const Array a = filled({64, 256}), b = filled({256, 32});
  const auto f = jax::jit([](Array x, Array y) {
    const Line line(7);
    return lax::dot(x, y);
  });
  const profile::Profile taken = profiled([&] { f(a, b).block_until_ready(); });
  const auto slot = std::find_if(taken.slots.begin(), taken.slots.end(), [](const auto& one) { return one.kind == "matmul"; });
  ASSERT_NE(slot, taken.slots.end());
  EXPECT_EQ(slot->flops, 2.0 * 64 * 256 * 32);
  EXPECT_EQ(slot->bytes_read, 4.0 * (64 * 256 + 256 * 32));
  EXPECT_EQ(slot->bytes_written, 4.0 * 64 * 32);
  EXPECT_EQ(slot->calls, 1);
  EXPECT_EQ(slot->line, 7);
  EXPECT_EQ(slot->equations, std::vector<std::string>{"dot_general"});
  EXPECT_EQ(taken.programs.at(static_cast<std::size_t>(slot->program)).backend, "cpu");
}

TEST_F(ProfiledPrograms, MarkedProgramsComputeTheSameBits) {
  const Array x = filled({96, 96}, 0.03), w = filled({4, 96, 96}, 0.02);
  const auto f = jax::jit([](Array a, Array ws) {
    auto step = [](Array carry, Array weight) {
      Array next = jnp::tanh(lax::dot(carry, weight)) + carry;
      return std::pair(next, jnp::sum(next));
    };
    auto [last, sums] = lax::scan(step, a, ws);
    return jnp::sum(last) + jnp::sum(jnp::sort(sums));
  });
  const Array plain = f(x, w);
  profile::start();
  const Array marked = f(x, w);
  const profile::Profile taken = profile::stop();
  EXPECT_EQ(std::memcmp(plain.raw_data(), marked.raw_data(), 4), 0);
  EXPECT_FALSE(taken.slots.empty());
}

TEST_F(ProfiledPrograms, ObjectCodeIsTheSameWhetherProfilesWereTakenOrNot) {
  const auto traced = jax::make_jaxpr([](Array a) { return jnp::tanh(lax::dot(a, a)) + jnp::sum(a); })(filled({128, 128}));
  const Program& program = traced;
  const std::string before = cpu::ir_text(program), loops = cpu::loops_text(program);
  profile::start();
  default_backend().compile(program)->execute(std::vector<Array>{filled({128, 128})}, {});
  EXPECT_EQ(cpu::ir_text(program), before);
  profile::stop();
  EXPECT_EQ(cpu::ir_text(program), before);
  EXPECT_EQ(cpu::loops_text(program), loops);
  EXPECT_EQ(loops.find("host -"), std::string::npos);
}

TEST_F(ProfiledPrograms, LongLoopsAreFoldedAndStillAddUp) {
  const Array x = filled({64, 64}, 0.01);
  const auto f = jax::jit([](Array a) {
    return lax::fori_loop(0, 3000, [](Array, Array carry) { return jnp::tanh(lax::dot(carry, carry)) * 0.5; }, a);
  });
  const profile::Profile taken = profiled([&] { f(x).block_until_ready(); });
  int64_t slots = 0, executions = 0, calls = 0;
  for (const profile::Slot& slot : taken.slots) slots += slot.nanoseconds, calls += slot.calls;
  for (const profile::Event& event : taken.events) {
    if (event.kind == profile::EventKind::module_execution) executions += event.duration;
  }
  EXPECT_EQ(slots, executions);
  EXPECT_GE(calls, 3000);
  EXPECT_LT(taken.events.size(), 6000U);
}

TEST_F(ProfiledPrograms, StepsReachProgramsThatRunInTheBackground) {
  const Array x = filled({700, 700}, 0.01);
  const auto f = jax::jit([](Array a) { return lax::dot(lax::dot(a, a), a); });
  const profile::Profile taken = profiled([&] {
    Array out = x;
    for (int64_t number : {4, 5}) {
      const profile::Step step(number);
      out = f(x);
    }
    out.block_until_ready();
  });
  std::vector<int64_t> steps;
  for (const profile::Event& event : taken.events) {
    if (event.kind == profile::EventKind::module_execution) steps.push_back(event.step);
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{4, 5}));
}

TEST(ProfiledOperations, EagerOnesAreSlotsByThemselves) {
  const Array x = filled({300, 300});
  const profile::Profile taken = profiled([&] {
    for (int i = 0; i < 3; ++i) lax::dot(x, x).block_until_ready();
  });
  int64_t calls = 0;
  for (const profile::Slot& slot : taken.slots) {
    if (slot.equations == std::vector<std::string>{"dot_general"}) {
      calls += slot.calls;
      EXPECT_EQ(slot.flops, 2.0 * 300 * 300 * 300);
    }
  }
  EXPECT_EQ(calls, 3);
}

TEST(ProfiledOperations, ReferenceProgramsAreOneSlotEach) {
  Config settings = config();
  settings.platform = "reference";
  const ConfigScope scope(settings);
  const auto f = jax::jit([](Array a) { return jnp::sum(a * 2.0); });
  const Array x = filled({32});
  const profile::Profile taken = profiled([&] { f(x).block_until_ready(); });
  ASSERT_EQ(taken.programs.size(), 1U);
  EXPECT_EQ(taken.programs[0].backend, "reference");
  ASSERT_FALSE(taken.slots.empty());
  EXPECT_EQ(taken.slots[0].kind, "program");
  EXPECT_EQ(taken.slots[0].calls, 1);
}

TEST(ProfiledOperations, LargeBlocksAreSampledWithTheirPurpose) {
  const profile::Profile taken = profiled([] { lax::dot(filled({600, 600}), filled({600, 600})).block_until_ready(); });
  ASSERT_FALSE(taken.memory.empty());
  int64_t taken_bytes = 0, peak = 0;
  for (const profile::MemorySample& sample : taken.memory) {
    taken_bytes += std::max<int64_t>(sample.bytes, 0);
    EXPECT_GE(sample.peak, peak);
    EXPECT_GE(sample.peak, sample.live);
    peak = sample.peak;
  }
  EXPECT_GE(taken_bytes, 3 * 600 * 600 * 4);
  int64_t blocks = 0;
  for (const profile::MemoryBlock& block : taken.peak_blocks) blocks += block.bytes;
  EXPECT_EQ(blocks, peak);
}

// ---- hot lines -----------------------------------------------------------------------------------------------------

struct Hot {
  const char* name;
  int line;
  std::function<Arrays()> run;
};

// Programs in which one line does far more than all others, by the count of its operations or bytes.
std::vector<Hot> hot_programs() {
  static const Array square = filled({512, 512}, 0.01), wide = filled({1 << 20}, 0.7), image = filled({4, 16, 48, 48}), taps = filled({32, 16, 5, 5}),
                     small = filled({32, 32}, 0.1), batch = filled({24, 128, 128}, 0.05);
  static const auto matmul = jax::jit([](Array a, Array s) {
    Array b, c;
    { const Line line(1); b = jnp::sin(s) + 1.0; }
    { const Line line(2); a = lax::dot(a, a); }
    { const Line line(3); c = jnp::sum(a) + jnp::sum(b); }
    return c;
  });
  static const auto functions = jax::jit([](Array w, Array s) {
    Array a, b;
    { const Line line(1); a = lax::dot(s, s); }
    { const Line line(2); b = w; for (int i = 0; i < 12; ++i) b = jnp::sin(b) * 1.01; }
    { const Line line(3); return b + jnp::sum(a); }
  });
  static const auto convolution = jax::jit([](Array x, Array k) {
    Array y;
    { const Line line(1); x = x * 0.5; }
    { const Line line(2); y = lax::conv(x, k, {1, 1}, "SAME"); }
    { const Line line(3); return jnp::sum(y); }
  });
  static const auto sorting = jax::jit([](Array w) {
    Array y;
    { const Line line(1); w = jnp::flip(w) * 3.0; }
    { const Line line(2); y = jnp::sort(jnp::sin(w * 12345.0)); }
    { const Line line(3); return y + 1.0; }
  });
  static const auto body = jax::jit([](Array a) {
    Array y;
    { const Line line(1); a = a + 1e-6; }
    y = lax::fori_loop(0, 10, [](Array, Array c) {
      Array next;
      { const Line line(2); next = lax::dot(c, c); }
      { const Line line(3); return next * 0.01; }
    }, a);
    { const Line line(4); return jnp::sum(y); }
  });
  static const auto batched = jax::jit([](Array b, Array s) {
    Array y;
    { const Line line(1); s = lax::dot(s, s); }
    { const Line line(2); y = jnp::matmul(b, b); }
    { const Line line(3); return jnp::sum(y) + jnp::sum(s); }
  });
  static const auto branch = jax::jit([](Array a, Array s) {
    return lax::cond(jnp::sum(s) > 0.0,
                     [](Array x) { const Line line(2); return lax::dot(x, x); },
                     [](Array x) { const Line line(3); return x + 1.0; }, a);
  });
  static const auto cumulative = jax::jit([](Array w, Array s) {
    Array y;
    { const Line line(1); s = lax::dot(s, s); }
    { const Line line(2); y = jnp::argsort(jnp::cos(w * 54321.0)); }
    { const Line line(3); return jnp::sum(s) + jnp::sum(y); }
  });
  static const auto factor = jax::jit([](Array a) {
    Array y;
    { const Line line(1); a = a * 0.001 + jnp::eye(512) * 4.0; }
    { const Line line(2); y = jnp::linalg::cholesky(a); }
    { const Line line(3); return jnp::sum(y); }
  });
  static const auto gradient = jax::jit(jax::grad([](Array a) {
    Array y;
    { const Line line(1); a = a * 1.5; }
    { const Line line(2); y = lax::dot(lax::dot(a, a), a); }
    { const Line line(3); return jnp::sum(y * 2.0); }
  }));
  return {{"matmul", 2, [] { return Arrays{matmul(square, small)}; }},
          {"functions", 2, [] { return Arrays{functions(wide, small)}; }},
          {"convolution", 2, [] { return Arrays{convolution(image, taps)}; }},
          {"sort", 2, [] { return Arrays{sorting(wide)}; }},
          {"loop body", 2, [] { return Arrays{body(square)}; }},
          {"batched matmul", 2, [] { return Arrays{batched(batch, small)}; }},
          {"branch", 2, [] { return Arrays{branch(square, small)}; }},
          {"argsort", 2, [] { return Arrays{cumulative(wide, small)}; }},
          {"cholesky", 2, [] { return Arrays{factor(square)}; }},
          {"gradient", 2, [] { return Arrays{gradient(square)}; }}};
}

TEST_F(ProfiledPrograms, TenHotLinesAreBlamed) {
  for (const Hot& hot : hot_programs()) {
    const profile::Profile taken = profiled([&] {
      for (const Array& out : hot.run()) out.block_until_ready();
    });
    EXPECT_GT(share_of_line(taken, hot.line), 0.5) << hot.name << "\n" << to_string(profile::summarise(taken));
    const profile::Summary summary = profile::summarise(taken);
    ASSERT_FALSE(summary.rows.empty()) << hot.name;
    EXPECT_EQ(summary.rows[0].source, "model.py:2") << hot.name;
    double shares = 0;
    for (const profile::Row& row : summary.rows) shares += row.share;
    EXPECT_NEAR(shares, 1, 1e-9);
  }
}

}  // namespace
}  // namespace capibara
