// Threads that prefetch numbered values for a reader, which receives them in order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace capibara::training {

// Value n is make(n), called by one of several threads; at most `ahead` values wait. An empty one ends the sequence.
template <class Value>
class OrderedWorkers {
 public:
  using Make = std::function<std::optional<Value>(int64_t number)>;

  OrderedWorkers(Make make, int64_t first, int64_t workers, int64_t ahead)
      : make_(std::move(make)), claimed_(first), next_(first), ahead_(ahead) {
    for (int64_t i = 0; i < workers; ++i) threads_.emplace_back([this] { work(); });
  }
  OrderedWorkers(const OrderedWorkers&) = delete;
  OrderedWorkers& operator=(const OrderedWorkers&) = delete;
  ~OrderedWorkers() {
    {
      std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  // The next value; empty after the last. An exception thrown by make is rethrown here, on every call.
  std::optional<Value> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return made_.count(next_) != 0; });
    Made& made = made_.at(next_);
    if (made.error) std::rethrow_exception(made.error);
    if (!made.value) return std::nullopt;
    std::optional<Value> value = std::move(made.value);
    made_.erase(next_++);
    lock.unlock();
    changed_.notify_all();
    return value;
  }

 private:
  struct Made {
    std::optional<Value> value;
    std::exception_ptr error;
  };

  void work() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopped_ || claimed_ < next_ + ahead_; });
      if (stopped_) return;
      const int64_t number = claimed_++;
      lock.unlock();
      Made made;
      try {
        made.value = make_(number);
      } catch (...) {
        made.error = std::current_exception();
      }
      const bool last = made.error || !made.value;
      lock.lock();
      made_.emplace(number, std::move(made));
      stopped_ = stopped_ || last;
      lock.unlock();
      changed_.notify_all();
    }
  }

  Make make_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int64_t, Made> made_;
  int64_t claimed_, next_, ahead_;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace capibara::training
