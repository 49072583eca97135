// Counters of the process's work, always on: one addition each, read by the monitor.
#pragma once

#include <capibara/analysis.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace capibara {

// Operations by the rate of their type.
using FlopsByType = std::array<uint64_t, rate_type_count>;

struct Counters {
  std::atomic<uint64_t> executions{0};                         // of jitted programs
  std::array<std::atomic<uint64_t>, rate_type_count> flops{};  // of these, and of operations outside of jit
  std::atomic<uint64_t> compilations{0}, compile_nanoseconds{0};
  std::atomic<uint64_t> checkpoints{0}, checkpoint_bytes{0}, checkpoint_nanoseconds{0}, checkpoint_failures{0};
  std::atomic<uint64_t> checkpoint_read_bytes{0};
  std::atomic<uint64_t> training_steps{0}, training_tokens{0};  // of trainers
  std::atomic<double> training_loss{0};                         // of their last step

  static void add(std::atomic<uint64_t>& counter, uint64_t count) {
    counter.fetch_add(count, std::memory_order_relaxed);
  }
};

inline constinit Counters process_counters{};

// Counts work where it begins. What runs on this thread while a counted operation lives is a part of it.
class CountedWork {
 public:
  static bool is_part() { return within_; }
  static void add(const FlopsByType& flops) {
    if (within_) return;
    for (std::size_t type = 0; type < flops.size(); ++type) {
      if (flops[type] > 0) Counters::add(process_counters.flops[type], flops[type]);
    }
  }

  // Nothing is counted while it lives.
  CountedWork() : outer_(within_) { within_ = true; }
  ~CountedWork() { within_ = outer_; }
  CountedWork(const CountedWork&) = delete;
  CountedWork& operator=(const CountedWork&) = delete;

 private:
  static inline constinit thread_local bool within_ = false;
  bool outer_;
};

inline FlopsByType counted_flops() {
  FlopsByType flops;
  for (std::size_t type = 0; type < flops.size(); ++type)
    flops[type] = process_counters.flops[type].load(std::memory_order_relaxed);
  return flops;
}

// The number of programs queued or running in the background.
std::size_t background_depth();

}  // namespace capibara
