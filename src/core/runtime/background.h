// Programs that run in the background: a queue worked off in order, by a thread of its own or by whoever waits.
//
// One program of the queue runs at a time, so that each finds the results of those before it. A thread that waits for a
// result runs the queue itself where no one does: a call that is waited for at once costs no change of threads. What
// takes long it leaves to the queue's thread, if it may be interrupted: between looks at the clock it asks the host
// language for signals, with that language's lock released. What it waits for is then given up: the program is told to
// stop, and where it does not within some milliseconds (LAPACK, a plugin, a callback) its thread goes on with it alone,
// keeping its buffers alive, while the queue gets a new one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

namespace capibara {

// One program on its way. Its results hold it, and reads of them wait for it.
class Completion {
 public:
  explicit Completion(std::string name) : name_(std::move(name)) {}  // of the program, for errors

  bool done() const { return done_.load(std::memory_order_acquire); }
  // Returns when the program has run; raises the error that it ended with.
  void wait();

 private:
  friend class Background;
  void finish(std::exception_ptr error);  // before done_ is set, no one reads the error

  const std::string name_;
  std::exception_ptr error_;
  std::atomic<int32_t> stop_{0};
  std::atomic<bool> done_{false};
};

// How a program in the background learns that it should end: generated code looks at the flag, kernels poll.
using BackgroundWork = std::function<void(const std::atomic<int32_t>& stop)>;

// Puts a program at the end of the queue; `bytes` is the memory that its results hold, `nanoseconds` what it is
// expected to take. Waits while too many are on their way.
void run_in_background(const std::shared_ptr<Completion>& completion, BackgroundWork work, std::size_t bytes = 0,
                       double nanoseconds = 0);

// Waits until the results of programs on their way leave room for more: asked before memory is taken for them.
void wait_for_room(std::size_t bytes);

// Waits until no program is on its way, whatever became of them.
void wait_for_background();

// Whether this thread is running a program of the queue.
bool in_background();

// What the host language does around a wait, so that its other threads run: `after` receives what `before` returned.
// `holds`: whether this thread holds its lock; no wait may find that true (debug builds check it).
void set_wait_hooks(void* (*before)(), void (*after)(void*), bool (*holds)());

// The host language's other threads run while this lives.
class Waiting {
 public:
  Waiting();
  ~Waiting();
  Waiting(const Waiting&) = delete;

 private:
  void* state_;
};

}  // namespace capibara
