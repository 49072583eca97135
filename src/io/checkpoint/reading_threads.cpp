// Threads that claim numbers from a shared counter.
#include "io/checkpoint/reading_threads.h"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace capibara {

namespace {

// Four requests keep a disk busy; decompression uses the processors.
constexpr int least_threads = 4, most_threads = 16;

thread_local bool reading = false;

class Reads {
 public:
  Reads(std::size_t count, FunctionRef<void(std::size_t)> read) : count_(count), read_(read) {}

  void work() {
    reading = true;
    // Numbers are claimed in order: all before the first that fails have begun, and its error is the one to raise.
    for (std::size_t i = next_++; i < count_ && i < failed_; i = next_++) {
      try {
        read_(i);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (i < failed_) {
          error_ = std::current_exception();
          failed_ = i;
        }
      }
    }
    reading = false;
  }

  void end() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  const std::size_t count_;
  const FunctionRef<void(std::size_t)> read_;
  std::atomic<std::size_t> next_{0}, failed_{SIZE_MAX};
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace

void for_each_read(std::size_t count, FunctionRef<void(std::size_t)> read) {
  if (count <= 1 || reading) {
    for (std::size_t i = 0; i < count; ++i) read(i);
    return;
  }
  Reads reads(count, read);
  const auto threads =
      std::min(count, static_cast<std::size_t>(std::clamp(thread_count(), least_threads, most_threads)));
  std::vector<std::thread> others;
  others.reserve(threads - 1);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals go to the threads of the program
  try {
    while (others.size() + 1 < threads) others.emplace_back([&] { reads.work(); });
  } catch (const std::system_error&) {
    // As many as the system allows.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  reads.work();
  for (std::thread& other : others) other.join();
  reads.end();
}

}  // namespace capibara
