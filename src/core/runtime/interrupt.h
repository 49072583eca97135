// Interruption: long work looks now and then whether it should stop.
//
// Only a thread that the host language called asks it for signals, and only where it waits or between the parts of a
// program. Kernels and threads of our own look at a flag, which such a thread sets: asking takes the host language's
// lock, and whoever holds that may be waiting for them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace capibara {

// Ends this thread's work, by an exception, where its stop flag is set. For kernels, on any thread.
void poll_stop();

// poll_stop, and the handler is asked at most every few milliseconds; it stops the work by throwing. Not for kernels,
// nor for threads of our own (debug builds check the latter).
void poll_interrupt();

// Whether this is a thread of the pool: it never takes the host language's lock, so whoever holds that may wait for a
// region.
bool on_pool_thread();

// Whether waits of this thread may be interrupted: it asks, and there is a handler.
bool may_be_interrupted();

// While a Ticking lives, the flag becomes 1 every few milliseconds: code that cannot afford to read a clock looks at
// it, sets it to 0 and polls. Beginning and ending one costs next to nothing: the thread that ticks goes on for a
// second.
class Ticking {
 public:
  Ticking();
  ~Ticking();
  Ticking(const Ticking&) = delete;
  static std::atomic<int32_t>& flag();  // lock-free: generated code reads its four bytes
};

// While a StopFlag lives, polls of this thread end the work as soon as the flag is set (null: never); the handler is
// asked only where `asks`: threads of our own must not wait for the host language.
class StopFlag {
 public:
  StopFlag(const std::atomic<int32_t>* flag, bool asks);
  ~StopFlag();
  StopFlag(const StopFlag&) = delete;
  static const std::atomic<int32_t>* current();  // of this thread, for the threads that help it

 private:
  const std::atomic<int32_t>* previous_;
  bool asked_;
};

// Set once by the host language; an empty handler means that nothing interrupts.
void set_interrupt_handler(std::function<void()> handler);

}  // namespace capibara
