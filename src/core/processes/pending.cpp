// Waits for a call while polling the watch and the user's interruption.
#include "core/processes/pending.h"

#include <chrono>

#include <capibara/distributed.h>

#include "core/runtime/interrupt.h"
#include "core/runtime/pause.h"

namespace capibara::processes {

namespace {
constexpr std::chrono::milliseconds look_at_watch(50);
constexpr std::chrono::seconds time_to_come(1);
}  // namespace

void Pending::State::finish(std::exception_ptr wrong) {
  if (watch) watch->end(number);
  std::lock_guard lock(mutex);
  error = std::move(wrong);
  done = true;
  changed.notify_all();
}

bool Pending::is_ready() const { return state_->done; }

void Pending::wait() const {
  State& state = *state_;
  for (int i = 0; i < state.spins && !state.done; ++i) pause_briefly();
  std::unique_lock lock(state.mutex);
  while (!state.changed.wait_for(lock, look_at_watch, [&] { return state.done.load(); })) {
    lock.unlock();
    if (may_be_interrupted()) poll_interrupt();
    if (state.watch) {
      state.watch->examine(state.number, state.call);
      // The comm thread may be inside of MPI, which does not return where a process died.
      if (const auto failure = state.watch->failure()) throw DistributedError(*failure);
    }
    lock.lock();
  }
  if (state.error) std::rethrow_exception(state.error);
}

void Pending::wait_out() const {
  State& state = *state_;
  try {
    return wait();
  } catch (...) {
    if (state.done) throw;
    const std::exception_ptr first = std::current_exception();
    std::unique_lock lock(state.mutex);
    auto is_over = [&] { return state.done.load(); };
    if (!state.changed.wait_for(lock, time_to_come, is_over)) {
      lock.unlock();
      if (state.watch) state.watch->fail(concat("interrupted in ", state.call.operation));
      lock.lock();
      state.changed.wait(lock, is_over);
    }
    std::rethrow_exception(first);
  }
}

}  // namespace capibara::processes
