// Counters of what the process does, always on: an addition each, read by the monitor.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace capibara {

struct Counters {
  std::atomic<uint64_t> executions{0}, flops{0};  // of jitted programs
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

// How many programs are queued or running in the background.
std::size_t background_depth();

}  // namespace capibara
