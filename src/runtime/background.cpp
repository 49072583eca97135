// The queue of programs in the background, its thread, and what waiting threads do.
#include "runtime/background.h"

#include <capibara/error.h>

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <new>
#include <thread>

#include "runtime/interrupt.h"

namespace capibara {

namespace {

constexpr std::size_t most_in_flight = 32;
constexpr std::size_t most_bytes_in_flight = std::size_t{256} << 20;
constexpr std::chrono::milliseconds period(2);  // between two questions whether a waiting thread is interrupted

thread_local int running_depth = 0;

void* (*before_wait)() = nullptr;
void (*after_wait)(void*) = nullptr;

// The host language's other threads run while this lives.
class Waiting {
 public:
  Waiting() : state_(before_wait ? before_wait() : nullptr) {}
  ~Waiting() {
    if (after_wait) after_wait(state_);
  }
  Waiting(const Waiting&) = delete;

 private:
  void* state_;
};

}  // namespace

class Background {
 public:
  static Background& instance() {
    static Background* const made = [] {
      Background* fresh = new Background;  // never freed: its thread may outlive everything else
      pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); }, [] { instance().after_fork(); });
      std::atexit([] { instance().end(); });
      return fresh;
    }();
    return *made;
  }

  void add(const std::shared_ptr<Completion>& completion, BackgroundWork work, std::size_t bytes) {
    std::unique_lock lock(mutex_);
    wait_while(lock, [this] { return queue_.size() >= most_in_flight; });
    queue_.push_back({completion, std::move(work), bytes});
    bytes_ += bytes;
    if (!thread_) {
      thread_ = true;
      std::thread([this] { serve(); }).detach();
    }
    lock.unlock();
    arrived_->notify_one();
  }

  void wait_for_room(std::size_t bytes) {
    if (bytes == 0) return;
    std::unique_lock lock(mutex_);
    wait_while(lock, [this, bytes] { return bytes_ + bytes > most_bytes_in_flight; });
  }

  void wait_for_all() {
    std::unique_lock lock(mutex_);
    wait_while(lock, [] { return true; });
  }

  // Runs programs or sleeps until this one is done. Whatever interrupts the wait is thrown, and the program given up.
  void until_done(Completion& completion) {
    const Waiting waiting;
    std::unique_lock lock(mutex_);
    while (!completion.done()) {
      if (!runner_ && !queue_.empty()) {
        if (std::exception_ptr interruption = run_next(lock, true)) std::rethrow_exception(interruption);
        continue;
      }
      finished_->wait_for(lock, period);
      if (completion.done()) return;
      lock.unlock();
      try {
        poll_interrupt();
      } catch (...) {
        give_up(completion);
        throw;
      }
      lock.lock();
    }
  }

 private:
  struct Job {
    std::shared_ptr<Completion> completion;
    BackgroundWork work;
    std::size_t bytes;
  };

  // Waits for one program after the other, the oldest first, while there are any and `full` says so.
  template <class Full>
  void wait_while(std::unique_lock<std::mutex>& lock, Full full) {
    while (running_depth == 0 && (runner_ || !queue_.empty()) && full()) {
      const std::shared_ptr<Completion> oldest = runner_ ? runner_ : queue_.front().completion;
      lock.unlock();
      until_done(*oldest);
      lock.lock();
    }
  }

  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      arrived_->wait(lock, [this] { return !runner_ && !queue_.empty() && !ended_; });
      run_next(lock, false);
    }
  }

  // Runs the first program with the lock open. Returns what interrupted it, where a waiting thread runs it: the program's
  // results then say so, and the thread gets the interruption itself.
  std::exception_ptr run_next(std::unique_lock<std::mutex>& lock, bool asks) {
    Job job = std::move(queue_.front());
    queue_.pop_front();
    runner_ = job.completion;
    lock.unlock();
    std::exception_ptr error, interruption;
    ++running_depth;
    try {
      const StopFlag flag(job.completion->stop_, asks);
      job.work(job.completion->stop_);
    } catch (const Error&) {
      error = std::current_exception();
    } catch (const InternalError&) {
      error = std::current_exception();
    } catch (const std::bad_alloc&) {
      error = std::current_exception();
    } catch (...) {
      interruption = std::current_exception();
      error = interrupted(*job.completion);
    }
    --running_depth;
    job.work = nullptr;  // inputs that nobody else holds are freed before anybody is told
    lock.lock();
    runner_ = nullptr;
    bytes_ -= job.bytes;
    job.completion->finish(error);
    finished_->notify_all();
    if (!queue_.empty()) arrived_->notify_one();
    return interruption;
  }

  static std::exception_ptr interrupted(const Completion& completion) {
    return std::make_exception_ptr(RuntimeError(concat(completion.name_, ": interrupted before its results were ready")));
  }

  // Ends the program, and all before it that have not run.
  void give_up(Completion& completion) {
    std::lock_guard lock(mutex_);
    if (completion.done()) return;
    if (runner_) {
      runner_->stop_.store(1, std::memory_order_relaxed);
      Ticking::flag().store(1, std::memory_order_relaxed);
    }
    if (runner_.get() == &completion) return;
    while (!queue_.empty()) {
      Job job = std::move(queue_.front());
      queue_.pop_front();
      bytes_ -= job.bytes;
      job.completion->finish(interrupted(*job.completion));
      if (job.completion.get() == &completion) break;
    }
    finished_->notify_all();
  }

  // The process ends: nobody will read what has not run.
  void end() {
    std::unique_lock lock(mutex_);
    ended_ = true;
    queue_.clear();
    if (running_depth > 0) return;  // a program of this very thread called exit
    if (!runner_) return;
    runner_->stop_.store(1, std::memory_order_relaxed);
    Ticking::flag().store(1, std::memory_order_relaxed);
    finished_->wait_for(lock, std::chrono::seconds(2), [this] { return !runner_; });
  }

  // In the child: the thread is gone, and so is what it was running. Waiting threads are gone too: the conditions are made
  // anew, and the old ones left as they are.
  void after_fork() {
    arrived_ = new std::condition_variable;
    finished_ = new std::condition_variable;
    thread_ = false;
    if (runner_ && running_depth == 0) {
      runner_->finish(std::make_exception_ptr(RuntimeError(concat(runner_->name_, ": the process was forked while it ran"))));
      runner_ = nullptr;
    }
    mutex_.unlock();
  }

  std::mutex mutex_;
  std::condition_variable* arrived_ = new std::condition_variable;   // never freed, as the whole
  std::condition_variable* finished_ = new std::condition_variable;
  std::deque<Job> queue_;
  std::shared_ptr<Completion> runner_;  // the program being run
  std::size_t bytes_ = 0;               // of the results of all programs on their way
  bool thread_ = false;           // whether the thread exists
  bool ended_ = false;
};

void Completion::finish(std::exception_ptr error) {
  error_ = std::move(error);
  done_.store(true, std::memory_order_release);
}

void Completion::wait() {
  if (!done()) Background::instance().until_done(*this);
  if (error_) std::rethrow_exception(error_);
}

void run_in_background(const std::shared_ptr<Completion>& completion, BackgroundWork work, std::size_t bytes) {
  Background::instance().add(completion, std::move(work), bytes);
}

void wait_for_room(std::size_t bytes) { Background::instance().wait_for_room(bytes); }
void wait_for_background() { Background::instance().wait_for_all(); }

bool in_background() { return running_depth > 0; }

void set_wait_hooks(void* (*before)(), void (*after)(void*)) {
  before_wait = before;
  after_wait = after;
}

}  // namespace capibara
