// The queue of background programs, its thread, and what waiting threads do.
#include "core/runtime/background.h"

#include <capibara/error.h>

#include <cassert>
#include <chrono>
#include <deque>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "core/profile/recorder.h"
#include "core/runtime/attend.h"
#include "core/runtime/counters.h"
#include "core/runtime/interrupt.h"
#include "core/runtime/outliving.h"

namespace capibara {

namespace {

constexpr std::size_t max_in_flight = 32;
constexpr std::size_t max_bytes_in_flight = std::size_t{256} << 20;

thread_local int running_depth = 0;

void* (*before_wait)() = nullptr;
void (*after_wait)(void*) = nullptr;
bool (*holds_host_lock)() = nullptr;

}  // namespace

Waiting::Waiting() : state_(before_wait ? before_wait() : nullptr) { assert(!holds_host_lock || !holds_host_lock()); }
Waiting::~Waiting() {
  if (after_wait) after_wait(state_);
}

class Background : public Outliving<Background> {
 public:
  void add(const std::shared_ptr<Completion>& completion, BackgroundWork work, std::size_t bytes, double nanoseconds) {
    std::unique_lock lock(mutex_);
    wait_while(lock, [this] { return queue_.size() >= max_in_flight; });
    queue_.push_back({completion, std::move(work), bytes, nanoseconds});
    bytes_ += bytes;
    start_thread();
    lock.unlock();
    arrived_.notify_all();
  }

  void wait_for_room(std::size_t bytes) {
    if (bytes == 0) return;
    std::unique_lock lock(mutex_);
    wait_while(lock, [this, bytes] { return bytes_ + bytes > max_bytes_in_flight; });
  }

  void wait_for_all() {
    std::unique_lock lock(mutex_);
    wait_while(lock, [] { return true; });
  }

  std::size_t depth() {
    std::lock_guard lock(mutex_);
    return queue_.size() + (running_ ? 1 : 0);
  }

  // Runs programs or sleeps until this one is done. An interruption of the wait is thrown, and the program given up.
  void until_done(Completion& completion) {
    const Waiting waiting;
    std::unique_lock lock(mutex_);
    while (!completion.done()) {
      if (!running_ && !queue_.empty() && !should_attend(queue_.front().nanoseconds)) {
        if (std::exception_ptr interruption = run_next(lock, true)) std::rethrow_exception(interruption);
        continue;
      }
      start_thread();  // a child of fork has none
      finished_.wait_for(lock, period);
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
  friend class Outliving;

  struct Job {
    std::shared_ptr<Completion> completion;
    BackgroundWork work;
    std::size_t bytes;
    double nanoseconds;
  };

  // A program being run. Once it is abandoned, its thread runs nothing else and the queue continues without it.
  struct Running {
    std::shared_ptr<Completion> completion;
    std::size_t bytes;
    bool abandoned = false;
  };

  void start_thread() {
    if (thread_) return;
    thread_ = true;
    std::thread([this] { serve(); }).detach();
  }

  // Waits for programs one at a time, the oldest first, while there are any and `full` holds.
  template <class Full>
  void wait_while(std::unique_lock<std::mutex>& lock, Full full) {
    while (running_depth == 0 && (running_ || !queue_.empty()) && full()) {
      const std::shared_ptr<Completion> oldest = running_ ? running_->completion : queue_.front().completion;
      lock.unlock();
      until_done(*oldest);
      lock.lock();
    }
  }

  void serve() {
    profile::name_thread("capibara programs");
    std::unique_lock lock(mutex_);
    const int own = ++threads_;
    for (;;) {
      arrived_.wait(lock, [this, own] { return own != threads_ || (!running_ && !queue_.empty() && !ended_); });
      if (own != threads_) return;  // while it ran a program that was abandoned, another took its place
      run_next(lock, false);
    }
  }

  // Runs the first program with the lock released. Returns what interrupted it, if a waiting thread runs it: the
  // program's results then raise an error, and the thread gets the interruption itself.
  std::exception_ptr run_next(std::unique_lock<std::mutex>& lock, bool asks) {
    Job job = std::move(queue_.front());
    queue_.pop_front();
    const auto running = std::make_shared<Running>(Running{job.completion, job.bytes});
    running_ = running;
    lock.unlock();
    std::exception_ptr error, interruption;
    ++running_depth;
    try {
      const StopFlag flag(&job.completion->stop_, asks);
      job.work(job.completion->stop_);
    } catch (const Error&) {
      error = std::current_exception();
    } catch (const InternalError&) {
      error = std::current_exception();
    } catch (const std::bad_alloc&) {
      error = std::current_exception();
    } catch (...) {
      // On the queue's thread nothing interrupts: what a callback threw is the program's own error.
      if (asks) interruption = std::current_exception();
      error = asks ? interrupted(*job.completion) : std::current_exception();
    }
    --running_depth;
    job.work = nullptr;  // frees inputs that no one else holds before waiting threads are notified
    lock.lock();
    if (running->abandoned) {
      --abandoned_;
      finished_.notify_all();
      return interruption;
    }
    running_ = nullptr;
    bytes_ -= job.bytes;
    job.completion->finish(error);
    finished_.notify_all();
    if (!queue_.empty()) arrived_.notify_all();
    return interruption;
  }

  static std::exception_ptr interrupted(const Completion& completion) {
    return std::make_exception_ptr(
        RuntimeError(concat(completion.name_, ": interrupted before its results were ready")));
  }

  // Ends the program, and all before it.
  void give_up(Completion& completion) {
    std::vector<Job> dropped;  // freed after the lock: they may hold objects of the host language
    std::unique_lock lock(mutex_);
    if (completion.done()) return;
    const std::shared_ptr<Running> running = running_;
    const bool is_running = running && running->completion.get() == &completion;
    while (!is_running && !queue_.empty()) {
      dropped.push_back(std::move(queue_.front()));
      queue_.pop_front();
      bytes_ -= dropped.back().bytes;
      dropped.back().completion->finish(interrupted(*dropped.back().completion));
      if (dropped.back().completion.get() == &completion) break;
    }
    finished_.notify_all();
    if (!running) return;
    stop(*running);
    if (finished_.wait_for(lock, grace, [&] { return running_ != running; })) return;
    abandon(running);
  }

  static void stop(Running& running) {
    running.completion->stop_.store(1, std::memory_order_relaxed);
    Ticking::flag().store(1, std::memory_order_relaxed);
  }

  // Its thread runs only this program to its end; a new one replaces it in the queue.
  void abandon(const std::shared_ptr<Running>& running) {
    running->abandoned = true;
    ++abandoned_;
    running_ = nullptr;
    bytes_ -= running->bytes;
    running->completion->finish(interrupted(*running->completion));
    thread_ = false;
    ++threads_;
    if (!queue_.empty()) start_thread();
    finished_.notify_all();
    arrived_.notify_all();
  }

  // The process ends: results that have not been computed will not be read.
  void end(std::unique_lock<std::mutex>& lock, int status) {
    ended_ = true;
    if (running_depth > 0) return;  // a program of this very thread called exit
    if (running_) stop(*running_);
    leave_unless(lock, status, [this] { return !running_ && abandoned_ == 0; });
  }

  // In the child the thread is gone, and with it the program that it was running.
  void after_fork() {
    thread_ = false;
    abandoned_ = 0;
    if (running_ && running_depth == 0) {
      Completion& lost = *running_->completion;
      lost.finish(std::make_exception_ptr(RuntimeError(concat(lost.name_, ": the process was forked while it ran"))));
      running_ = nullptr;
    }
  }

  std::deque<Job> queue_;
  std::shared_ptr<Running> running_;  // the program being run
  std::size_t bytes_ = 0;             // of the results of all queued and running programs
  bool thread_ = false;               // true if the queue has a thread
  int threads_ = 0;                   // counts those it had: the last one serves it
  int abandoned_ = 0;                 // programs that were given up and still run
  bool ended_ = false;
};

void Completion::finish(std::exception_ptr error) {
  error_ = std::move(error);
  done_.store(true, std::memory_order_release);
}

void Completion::wait() {
  if (!done()) {
    const profile::Timed timed(profile::EventKind::wait, name_);
    Background::instance().until_done(*this);
  }
  if (error_) std::rethrow_exception(error_);
}

void run_in_background(const std::shared_ptr<Completion>& completion, BackgroundWork work, std::size_t bytes,
                       double nanoseconds) {
  Background::instance().add(completion, std::move(work), bytes, nanoseconds);
}

void wait_for_room(std::size_t bytes) { Background::instance().wait_for_room(bytes); }
void wait_for_background() { Background::instance().wait_for_all(); }

std::size_t background_depth() { return Background::instance().depth(); }

bool in_background() { return running_depth > 0; }

void set_wait_hooks(void* (*before)(), void (*after)(void*), bool (*holds)()) {
  before_wait = before;
  after_wait = after;
  holds_host_lock = holds;
}

}  // namespace capibara
