// The state of a call in flight, shared by the comm thread and the waiting thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>

#include "core/processes/exchange.h"
#include "core/processes/watch.h"

namespace capibara::processes {

struct Pending::State {
  Call call;
  std::shared_ptr<Watch> watch;
  uint64_t number = 0;  // by the watch
  int spins = 0;

  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<bool> done{false};
  std::exception_ptr error;

  void finish(std::exception_ptr wrong = nullptr);
};

}  // namespace capibara::processes
