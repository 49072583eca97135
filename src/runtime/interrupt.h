// Interruption: long work asks now and then whether it should stop.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace capibara {

// Cheap; asks the handler at most every few milliseconds. The handler stops the work by throwing.
void poll_interrupt();

// While a Ticking lives, the flag becomes 1 every few milliseconds: code that cannot afford to read a clock looks at it,
// sets it to 0 and polls. Beginning and ending one costs next to nothing: the thread that ticks goes on for a second.
class Ticking {
 public:
  Ticking();
  ~Ticking();
  Ticking(const Ticking&) = delete;
  static std::atomic<int32_t>& flag();  // lock-free: generated code reads its four bytes
};

// While a StopFlag lives, polls of this thread end the work as soon as the flag is set; the handler is asked only where
// `asks`: threads of our own must not wait for the host language.
class StopFlag {
 public:
  StopFlag(const std::atomic<int32_t>& flag, bool asks);
  ~StopFlag();
  StopFlag(const StopFlag&) = delete;

 private:
  const std::atomic<int32_t>* previous_;
  bool asked_;
};

// Set once by the host language; an empty handler means that nothing interrupts.
void set_interrupt_handler(std::function<void()> handler);

}  // namespace capibara
