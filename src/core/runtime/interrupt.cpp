// The handler that interrupts work, and how often it is called.
#include "core/runtime/interrupt.h"

#include <capibara/error.h>

#include <atomic>
#include <cassert>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

#include <pthread.h>

namespace capibara {

namespace {

// Never freed: threads may still poll while the process ends, and replaced handlers may be running.
struct Handler {
  std::function<void()> ask;
  const Handler* replaced;
};
std::atomic<const Handler*> handler = nullptr;

constexpr std::chrono::milliseconds handler_period(5);

thread_local const std::atomic<int32_t>* stop_flag = nullptr;
thread_local bool asks_handler = true;

}  // namespace

StopFlag::StopFlag(const std::atomic<int32_t>* flag, bool asks) : previous_(stop_flag), previous_asks_(asks_handler) {
  stop_flag = flag;
  asks_handler = asks;
}

StopFlag::~StopFlag() {
  stop_flag = previous_;
  asks_handler = previous_asks_;
}

const std::atomic<int32_t>* StopFlag::current() { return stop_flag; }

void poll_stop() {
  if (stop_flag && stop_flag->load(std::memory_order_relaxed) != 0)
    throw RuntimeError("interrupted before the results were ready");
}

bool may_be_interrupted() {
  const Handler* current = handler.load(std::memory_order_acquire);
  return asks_handler && current && current->ask;
}

void poll_interrupt() {
  assert(!on_pool_thread());
  poll_stop();
  if (!asks_handler) return;
  const Handler* current = handler.load(std::memory_order_acquire);
  if (!current || !current->ask) return;
  thread_local std::chrono::steady_clock::time_point last;
  auto now = std::chrono::steady_clock::now();
  if (now - last < handler_period) return;
  last = now;
  current->ask();
}

namespace {

std::atomic<int32_t> tick = 0;
static_assert(sizeof tick == sizeof(int32_t) && std::atomic<int32_t>::is_always_lock_free);

// The thread that ticks; it sleeps after a while without work. A child of fork starts without it and makes its own.
class Ticker {
 public:
  Ticker() {
    pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                   [] {
                     instance().awake_.store(false);
                     instance().mutex_.unlock();
                   });
  }
  static Ticker& instance() {
    static Ticker* made = new Ticker;  // never freed: its thread may outlive everything else
    return *made;
  }
  void begin() {
    running_.fetch_add(1);
    if (!awake_.load()) wake();
  }
  void end() { running_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  void wake() {
    std::lock_guard lock(mutex_);
    if (awake_.load()) return;
    awake_.store(true);
    std::thread([this] { run(); }).detach();
  }

  void run() {
    for (;;) {
      for (int idle = 0; idle < idle_periods; ++idle) {
        std::this_thread::sleep_for(handler_period);
        if (running_.load(std::memory_order_relaxed) == 0) continue;
        tick.store(1, std::memory_order_relaxed);
        idle = 0;
      }
      std::lock_guard lock(mutex_);
      awake_.store(false);
      if (running_.load() == 0) return;  // a Ticking that begins from now on sees that no thread ticks
      awake_.store(true);
    }
  }

  static constexpr int idle_periods = 200;
  std::atomic<int> running_ = 0;
  std::atomic<bool> awake_ = false;
  std::mutex mutex_;
};

}  // namespace

Ticking::Ticking() { Ticker::instance().begin(); }
Ticking::~Ticking() { Ticker::instance().end(); }
std::atomic<int32_t>& Ticking::flag() { return tick; }

void set_interrupt_handler(std::function<void()> next) {
  auto* fresh = new Handler{std::move(next), handler.load()};
  while (!handler.compare_exchange_weak(fresh->replaced, fresh)) {
  }
}

}  // namespace capibara
