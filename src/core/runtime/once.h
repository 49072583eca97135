// Once: work that is done on first use; if it throws, the next caller tries again.
//
// std::call_once means the same, but rests on pthread_once, which some C libraries and the thread sanitizer leave
// locked after an exception: the next caller waits forever.
#pragma once

#include <atomic>
#include <mutex>

namespace capibara {

class Once {
 public:
  bool done() const { return done_.load(std::memory_order_acquire); }

  template <class Work>
  void run(Work&& work) {
    if (done()) return;
    std::lock_guard lock(mutex_);
    if (done()) return;
    work();
    done_.store(true, std::memory_order_release);
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> done_{false};
};

}  // namespace capibara
