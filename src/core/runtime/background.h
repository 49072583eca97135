// Programs that run in the background: a queue processed in order, by a thread of its own or by a waiting thread.
//
// One program of the queue runs at a time, so that each finds the results of those before it. A thread that waits for a
// result runs the queue itself if no other does: waiting right after a call costs no thread switch. Long programs it
// leaves to the queue's thread, if it may be interrupted: it then polls the host language for signals regularly, with
// that language's lock released. A program whose wait is interrupted is given up: it is signalled to stop, and if it
// does not within some milliseconds (LAPACK, a plugin, a callback) its thread continues with it alone, keeping its
// buffers alive, while the queue gets a new thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

namespace capibara {

// A program that is queued or running. Its results hold it, and reads of them wait for it.
class Completion {
 public:
  explicit Completion(std::string name) : name_(std::move(name)) {}  // of the program, for errors

  bool done() const { return done_.load(std::memory_order_acquire); }
  // Returns when the program has run; rethrows its error.
  void wait();

 private:
  friend class Background;
  void finish(std::exception_ptr error);  // before done_ is set, no one reads the error

  const std::string name_;
  std::exception_ptr error_;
  std::atomic<int32_t> stop_{0};
  std::atomic<bool> done_{false};
};

// The work of a background program. The flag is set when it should end: generated code reads it, kernels poll.
using BackgroundWork = std::function<void(const std::atomic<int32_t>& stop)>;

// Appends a program to the queue; `bytes` is the memory that its results hold, `nanoseconds` its expected
// time. Waits while too many are queued or running.
void run_in_background(const std::shared_ptr<Completion>& completion, BackgroundWork work, std::size_t bytes = 0,
                       double nanoseconds = 0);

// Waits until the results of queued and running programs leave room for more: called before allocating memory for them.
void wait_for_room(std::size_t bytes);

// Waits until no program is queued or running, however they ended.
void wait_for_background();

// True if this thread is running a program of the queue.
bool in_background();

// Hooks of the host language around a wait, which let its other threads run: `after` receives what `before` returned.
// `holds`: true if this thread holds its lock; no wait may begin with the lock held (debug builds check it).
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
