// Long programs run after their call has returned: when results are ready, chains of calls, donation, errors, equal
// results.
#include <capibara/capibara.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "backends/cpu/generated_code.h"
#include "core/runtime/background.h"
#include "core/runtime/interrupt.h"

namespace capibara::cpu {
namespace {

namespace lax = jax::lax;

// Iterations depend on each other: takes milliseconds on any machine, while a call waits for at most 0.2 ms.
constexpr int64_t trips_of_few = 2'000'000;

Array work(const Array& x) {
  const int64_t trips = x.size() < 100 ? trips_of_few : 2000;
  return lax::fori_loop(
      0, trips, [](Array, Array value) { return value * 0.999f + 0.5f; }, x);
}

// Prevents background programs from starting during its lifetime.
class Closed {
 public:
  Closed() {
    run_in_background(completion_, [this](const std::atomic<int32_t>&) {
      entered_ = true;
      while (!open_) std::this_thread::yield();
    });
    while (!entered_) std::this_thread::yield();
  }
  ~Closed() {
    open_ = true;
    completion_->wait();
  }

 private:
  std::shared_ptr<Completion> completion_ = std::make_shared<Completion>("closed");
  std::atomic<bool> entered_{false}, open_{false};
};

Array ones(int64_t count) { return array<float>(std::vector<float>(static_cast<std::size_t>(count), 1.0f)); }

float expected_work(float value) {
  for (int64_t i = 0; i < trips_of_few; ++i) value = std::fma(value, 0.999f, 0.5f);
  return value;
}

bool same_bits(const Array& a, const Array& b) {
  return a.type() == b.type() &&
         std::memcmp(a.raw_data(), b.raw_data(), static_cast<std::size_t>(a.size() * storage_size(a.dtype()))) == 0;
}

TEST(Later, TheCallOfALongProgramReturnsBeforeItsValueIsThere) {
  NEEDS_COMPILER();
  const auto f = jax::jit(work);
  const Array x = ones(4);
  f(x).block_until_ready();
  Array y;
  {
    const Closed closed;
    y = f(x);
    EXPECT_FALSE(y.is_ready());
    EXPECT_EQ(y.shape(), x.shape());
  }
  y.block_until_ready();
  EXPECT_TRUE(y.is_ready());
  EXPECT_NEAR(y.to_vector<float>()[0], expected_work(1.0f), 0.01);
}

TEST(Later, AShortProgramIsOverWhenItsCallReturns) {
  NEEDS_COMPILER();
  const auto f = jax::jit([](Array x) { return x + 1; });
  EXPECT_TRUE(f(ones(4)).is_ready());
}

TEST(Later, CallsChainWithoutWaiting) {
  NEEDS_COMPILER();
  const auto slow = jax::jit(work);
  const auto next = jax::jit([](Array x) { return x * 2 + 1; });
  const Array x = ones(4);
  const Array once = next(slow(x));
  once.block_until_ready();
  Array y;
  {
    const Closed closed;
    y = slow(x);
    for (int i = 0; i < 3; ++i) y = next(slow(y));
    EXPECT_FALSE(y.is_ready());
  }
  Array waited = slow(x).block_until_ready();
  for (int i = 0; i < 3; ++i) waited = next(slow(waited).block_until_ready()).block_until_ready();
  EXPECT_TRUE(same_bits(y, waited));
}

TEST(Later, OperationsOutsideOfJitWaitForWhatTheyRead) {
  NEEDS_COMPILER();
  const Array y = jax::jit(work)(ones(4));
  EXPECT_EQ((y + 1).to_vector<float>()[3], y.to_vector<float>()[3] + 1);
}

TEST(Later, AProgramTracedOverAPendingValueReadsIt) {
  NEEDS_COMPILER();
  const Array y = jax::jit(work)(ones(4));
  const auto captures = jax::jit([y](Array x) { return x + y; });
  EXPECT_EQ(captures(ones(4)).to_vector<float>()[0], y.to_vector<float>()[0] + 1);
}

TEST(Later, DonatedInputsLiveUntilTheProgramHasRun) {
  NEEDS_COMPILER();
  const auto f = jax::jit(work, {.donate_argnums = {0}});
  Array x = ones(1 << 15);
  const Array expected = jax::jit(work)(x);
  Array y;
  {
    const Closed closed;
    y = f(x);
    EXPECT_TRUE(x.is_deleted());
    EXPECT_THROW(x.raw_data(), RuntimeError);
    x = Array();
  }
  EXPECT_TRUE(same_bits(y, expected));
}

TEST(Later, ManyCallsAreInFlight) {
  NEEDS_COMPILER();
  const auto f = jax::jit([](Array x) {
    return lax::fori_loop(
        0, 40000, [](Array, Array value) { return value * 0.5f + 1.0f; }, x);
  });
  Arrays results;
  for (int i = 0; i < 100; ++i) results.push_back(f(array<float>({static_cast<float>(i), 0.0f})));
  for (const Array& result : results) EXPECT_EQ(result.to_vector<float>()[0], 2.0f);
}

TEST(Later, ResultsThatNobodyReadsAreForgotten) {
  NEEDS_COMPILER();
  const auto f = jax::jit(work);
  for (int i = 0; i < 5; ++i) f(ones(1 << 12));
  EXPECT_NEAR(f(ones(4)).to_vector<float>()[0], expected_work(1.0f), 0.01);
}

TEST(Later, ThreadsReadOnePendingResult) {
  NEEDS_COMPILER();
  const auto f = jax::jit(work);
  const Array y = f(ones(4));
  std::vector<float> read(8);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < read.size(); ++t) threads.emplace_back([&, t] { read[t] = y.to_vector<float>()[t % 4]; });
  for (std::thread& thread : threads) thread.join();
  for (float value : read) EXPECT_EQ(value, read[0]);
}

TEST(Later, SideEffectsHappenBeforeTheCallReturns) {
  NEEDS_COMPILER();
  int calls = 0;
  const auto f = jax::jit([&calls](Array x) {
    Array y = work(x);
    jax::debug::callback([&calls](const Arrays&) { ++calls; }, {y});
    return y;
  });
  const Array y = f(ones(4));
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(y.is_ready());
}

TEST(Later, AnErrorOfAnEarlierProgramReachesWhatReadsItsResult) {
  NEEDS_COMPILER();
  struct Interruption {};
  const auto forever = jax::jit([](Array x) {
    return lax::while_loop([](Array v) { return lax::reduce_sum(v, {.axes = {0}}) >= 0.0f; },
                           [](Array v) { return v * 1.0f; }, x);
  });
  const auto next = jax::jit([](Array x) { return x + 1; });
  const Array never = forever(ones(4));
  const Array after = next(never);
  set_interrupt_handler([] { throw Interruption(); });
  EXPECT_THROW(never.block_until_ready(), Interruption);
  set_interrupt_handler(nullptr);
  EXPECT_THROW(never.to_vector<float>(), RuntimeError);
  EXPECT_THROW(after.to_vector<float>(), RuntimeError);
  EXPECT_EQ(next(ones(4)).to_vector<float>()[0], 2.0f);
}

}  // namespace
}  // namespace capibara::cpu
