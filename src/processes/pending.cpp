// Waits for a call, and looks at the watch and for the user's interruption meanwhile.
#include "processes/pending.h"

#include <chrono>

#include <capibara/distributed.h>

#include "runtime/interrupt.h"

namespace capibara::processes {

namespace {
constexpr std::chrono::milliseconds look_at_watch(50);
}

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
  for (int i = 0; i < state.spins && !state.done; ++i) {
  }
  std::unique_lock lock(state.mutex);
  while (!state.changed.wait_for(lock, look_at_watch, [&] { return state.done.load(); })) {
    lock.unlock();
    if (may_be_interrupted()) poll_interrupt();
    if (state.watch) {
      state.watch->examine(state.number, state.call);
      // The comm thread may be inside of MPI, which does not return where somebody died.
      if (const auto failure = state.watch->failure()) throw DistributedError(*failure);
    }
    lock.lock();
  }
  if (state.error) std::rethrow_exception(state.error);
}

}  // namespace capibara::processes
