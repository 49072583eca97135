// The threads that attended work runs on, and the wait for it.
#include "core/runtime/attend.h"

#include <capibara/error.h>

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "core/runtime/background.h"
#include "core/runtime/interrupt.h"
#include "core/runtime/outliving.h"

namespace capibara {

namespace {

constexpr double brief_nanoseconds = 1e6;  // how long an interruption may have to wait

struct Task {
  std::function<void(const std::atomic<int32_t>&)> work;
  std::atomic<int32_t> stop{0};
  bool done = false;
  std::exception_ptr error;
};

// Idle threads wait for tasks; there are as many as the most tasks that ran at once.
class Attendants : public Outliving<Attendants> {
 public:
  void run(const std::shared_ptr<Task>& task) {
    const Waiting waiting;
    std::unique_lock lock(mutex_);
    if (idle_ <= tasks_.size()) start_thread();
    tasks_.push_back(task);
    ++running_;
    arrived_.notify_one();
    while (!task->done) {
      finished_.wait_for(lock, period);
      if (task->done) return;
      lock.unlock();
      try {
        poll_interrupt();
      } catch (...) {
        task->stop.store(1, std::memory_order_relaxed);
        Ticking::flag().store(1, std::memory_order_relaxed);
        lock.lock();
        finished_.wait_for(lock, grace, [&] { return task->done; });
        throw;
      }
      lock.lock();
    }
  }

 private:
  friend class Outliving;

  void start_thread() {
    // The host language's signals go to its own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([this] { serve(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      arrived_.wait(lock, [this] { return !tasks_.empty(); });
      --idle_;
      const std::shared_ptr<Task> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      try {
        const StopFlag flag(&task->stop, false);
        task->work(task->stop);
      } catch (...) {
        task->error = std::current_exception();
      }
      task->work = nullptr;  // frees what no one else holds before the waiting thread is notified
      lock.lock();
      task->done = true;
      --running_;
      finished_.notify_all();
    }
  }

  void end(std::unique_lock<std::mutex>& lock, int status) {
    leave_unless(lock, status, [this] { return running_ == 0; });
  }

  void after_fork() {
    tasks_.clear();
    idle_ = running_ = 0;
  }

  std::deque<std::shared_ptr<Task>> tasks_;  // not yet taken by a thread
  std::size_t idle_ = 0, running_ = 0;
};

}  // namespace

bool should_attend(double nanoseconds) { return nanoseconds > brief_nanoseconds && may_be_interrupted(); }

void run_attended(const std::string& name, std::function<void(const std::atomic<int32_t>&)> work) {
  const auto task = std::make_shared<Task>();
  task->work = std::move(work);
  try {
    Attendants::instance().run(task);
  } catch (const std::system_error&) {
    throw RuntimeError(concat(name, ": the process may have no more threads"));
  }
  if (task->error) std::rethrow_exception(task->error);
}

}  // namespace capibara
