// Profiles of compiled programs: slots that sum to the time, their attributes, and unchanged object code.
#include <chrono>
#include <cstring>

#include "backends/cpu/execution/backend.h"
#include "operate/profile/programs.h"

namespace capibara {
namespace {

namespace jnp = jax::numpy;
namespace lax = jax::lax;
namespace profile = capibara::profile;

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
  EXPECT_EQ(slots, executions);  // no time between the marks is lost
  EXPECT_LE(static_cast<double>(slots), outside);
  EXPECT_GE(static_cast<double>(slots),
            0.6 * outside);  // the rest is dispatch and waiting, possibly on a busy machine
}

TEST_F(ProfiledPrograms, MatmulsKnowTheirOperationsAndBytes) {
  const Array a = filled({64, 256}), b = filled({256, 32});
  const auto f = jax::jit([](Array x, Array y) {
    const Line line(7);
    return lax::dot(x, y);
  });
  const profile::Profile taken = profiled([&] { f(a, b).block_until_ready(); });
  const auto slot =
      std::find_if(taken.slots.begin(), taken.slots.end(), [](const auto& one) { return one.kind == "matmul"; });
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
  const profile::Profile taken = profile::stop();  // waits for the call
  EXPECT_EQ(std::memcmp(plain.raw_data(), marked.raw_data(), 4), 0);
  EXPECT_FALSE(taken.slots.empty());
}

TEST_F(ProfiledPrograms, ObjectCodeIsTheSameWhetherProfilesWereTakenOrNot) {
  const auto traced =
      jax::make_jaxpr([](Array a) { return jnp::tanh(lax::dot(a, a)) + jnp::sum(a); })(filled({128, 128}));
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
    return lax::fori_loop(
        0, 3000, [](Array, Array carry) { return jnp::tanh(lax::dot(carry, carry)) * 0.5; }, a);
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

}  // namespace
}  // namespace capibara
