// The one instance of a class with threads of its own, which may outlive everything else in the process.
#pragma once

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <new>

namespace capibara {

// Never freed. `Self` defines what happens in a child of fork, where only the calling thread survives (`after_fork`),
// and at the end of the process (`end`, with the exit status); both are called with the mutex locked.
template <class Self>
class Outliving {
 public:
  static Self& instance() {
    static Self* const made = [] {
      Self* fresh = new Self;
      pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                     [] { instance().in_child(); });
      on_exit([](int status, void*) { instance().at_exit(status); }, nullptr);
      return fresh;
    }();
    return *made;
  }

 protected:
  static constexpr std::chrono::milliseconds grace{25};  // for work that was signalled to stop
  static constexpr std::chrono::milliseconds period{2};  // between two polls for an interruption of a waiting thread

  // Work that cannot be stopped must not outlive the libraries that it uses: unless all is quiet soon, the process
  // exits at once.
  template <class Quiet>
  void leave_unless(std::unique_lock<std::mutex>& lock, int status, Quiet quiet) {
    if (finished_.wait_for(lock, grace, quiet)) return;
    std::fflush(nullptr);
    _exit(status);
  }

  std::mutex mutex_;
  std::condition_variable arrived_, finished_;

 private:
  // Waiting threads are gone, and the conditions would wait for them for ever: they are constructed anew in place.
  void in_child() {
    new (&arrived_) std::condition_variable;
    new (&finished_) std::condition_variable;
    static_cast<Self*>(this)->after_fork();
    mutex_.unlock();
  }

  void at_exit(int status) {
    std::unique_lock lock(mutex_);
    static_cast<Self*>(this)->end(lock, status);
  }
};

}  // namespace capibara
