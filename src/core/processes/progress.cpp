// Waiting that costs others little: four processes may share two cores.
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include <capibara/distributed.h>

#include "core/processes/channel.h"

namespace capibara::processes {

namespace {
constexpr int yields = 200;
constexpr int max_sleep_us = 500;
}  // namespace

// Two threads of a process are busy while one waits for the other.
Progress::Progress(int processes_here) {
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  spins_ = cores >= 2 * processes_here ? 2000 : 0;
}

void Progress::pause(int step) const {
  if (step < spins_) return;
  if (watch_ && watch_->has_failed()) throw DistributedError(*watch_->failure());
  if (step < spins_ + yields) {
    sched_yield();
    return;
  }
  const int slept = step - spins_ - yields;
  std::this_thread::sleep_for(std::chrono::microseconds(std::min(max_sleep_us, 10 * (1 + slept))));
}

void check_mpi(const char* wrong) {
  if (wrong) throw RuntimeError(concat("MPI: ", wrong));
}

}  // namespace capibara::processes
