// Interruption: long work checks now and then whether it should stop.
//
// Only a thread that the host language called polls it for signals, and only while it waits or between the parts of a
// program. Kernels and threads of our own check a flag, which such a thread sets: polling takes the host language's
// lock, whose holder may be waiting for them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace capibara {

// Ends this thread's work, by an exception, if its stop flag is set. For kernels, on any thread.
void poll_stop();

// poll_stop, and also calls the handler at most every few milliseconds; it stops the work by throwing. Not for kernels,
// nor for threads of our own (debug builds check the latter).
void poll_interrupt();

// True on a thread of the pool: it never takes the host language's lock, so the lock's holder may wait for a
// region.
bool on_pool_thread();

// True if waits of this thread may be interrupted: it polls, and there is a handler.
bool may_be_interrupted();

// While a Ticking lives, the flag becomes 1 every few milliseconds: code that cannot afford to read a clock reads
// it, sets it to 0 and polls. Beginning and ending one costs next to nothing: the ticking thread keeps running for a
// second.
class Ticking {
 public:
  Ticking();
  ~Ticking();
  Ticking(const Ticking&) = delete;
  static std::atomic<int32_t>& flag();  // lock-free: generated code reads its four bytes
};

// While a StopFlag lives, polls of this thread end the work as soon as the flag is set (null: never); the handler is
// called only if `asks`: threads of our own must not wait for the host language.
class StopFlag {
 public:
  StopFlag(const std::atomic<int32_t>* flag, bool asks);
  ~StopFlag();
  StopFlag(const StopFlag&) = delete;
  static const std::atomic<int32_t>* current();  // of this thread, for the threads that help it

 private:
  const std::atomic<int32_t>* previous_;
  bool previous_asks_;
};

// Set once by the host language; an empty handler means that nothing interrupts.
void set_interrupt_handler(std::function<void()> handler);

}  // namespace capibara
