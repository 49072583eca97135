// The handler that long work asks, and how often.
#include "runtime/interrupt.h"

#include <atomic>
#include <chrono>
#include <memory>

namespace capibara {

namespace {

// Never freed: threads may still ask while the process ends.
std::atomic<const std::function<void()>*> handler = nullptr;

constexpr std::chrono::milliseconds period(5);

}  // namespace

void poll_interrupt() {
  const std::function<void()>* ask = handler.load(std::memory_order_acquire);
  if (!ask) return;
  thread_local std::chrono::steady_clock::time_point last;
  auto now = std::chrono::steady_clock::now();
  if (now - last < period) return;
  last = now;
  (*ask)();
}

void set_interrupt_handler(std::function<void()> next) {
  handler.store(next ? new std::function<void()>(std::move(next)) : nullptr, std::memory_order_release);
}

}  // namespace capibara
