// Errors and events.
#include <capibara/error.h>

#include <condition_variable>
#include <deque>
#include <thread>

#include "backends/pjrt/server/objects.h"

namespace capibara::pjrt::server {

// ---- errors --------------------------------------------------------------------------------------------------------

abi::Error* make_error(const std::exception_ptr& error) {
  const auto made = [](Code code, const char* text) { return new abi::Error{static_cast<int32_t>(code), text}; };
  try {
    std::rethrow_exception(error);
  } catch (const Failure& failure) {
    return made(failure.code, failure.what());
  } catch (const NotImplementedError& failure) {
    return made(Code::unimplemented, failure.what());
  } catch (const RuntimeError& failure) {
    const bool memory = std::string_view(failure.what()).find("out of memory") != std::string_view::npos;
    return made(memory ? Code::resource_exhausted : Code::internal, failure.what());
  } catch (const Error& failure) {
    return made(Code::invalid_argument, failure.what());
  } catch (const std::bad_alloc&) {
    return made(Code::resource_exhausted, "out of memory");
  } catch (const std::exception& failure) {
    return made(Code::internal, failure.what());
  } catch (...) {
    return made(Code::internal, "unknown error");
  }
}

namespace {

void error_destroy(abi::ErrorDestroy* args) { delete args->error; }

void error_message(abi::ErrorMessage* args) {
  args->message = args->error->text.data();
  args->message_size = args->error->text.size();
}

void error_code(abi::ErrorCode& args) { args.code = args.error->code; }

}  // namespace

// ---- gates ---------------------------------------------------------------------------------------------------------

void Gate::open() {
  std::vector<std::function<void()>> waiting;
  {
    const std::lock_guard lock(mutex_);
    open_.store(true, std::memory_order_release);
    waiting.swap(waiting_);
  }
  open_.notify_all();
  for (const auto& what : waiting) what();
}

void Gate::wait() { open_.wait(false); }

void Gate::then(std::function<void()> what) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_open()) {
      waiting_.push_back(std::move(what));
      return;
    }
  }
  what();
}

// ---- events --------------------------------------------------------------------------------------------------------

namespace {

// A donated array is complete: whoever took it has waited for its value.
bool is_over(const Array& array) { return array.is_deleted() || array.is_ready(); }

bool is_over(const abi::Event& event) {
  if (event.gate) return event.gate->is_open();
  for (const Array& array : event.arrays) {
    if (!is_over(array)) return false;
  }
  return true;
}

// The error of the program that should have filled the arrays; null if there is none.
std::exception_ptr outcome(const std::vector<Array>& arrays) {
  for (const Array& array : arrays) {
    try {
      if (!array.is_deleted()) array.buffer().wait();
    } catch (...) {
      if (!array.is_deleted()) return std::current_exception();
    }
  }
  return nullptr;
}

void wait_for(const abi::Event& event) {
  if (event.gate)
    event.gate->wait();
  else if (const std::exception_ptr error = outcome(event.arrays))
    std::rethrow_exception(error);
}

// Waits for arrays and then runs the registered callbacks: programs run in order, so one thread is enough.
class Watcher {
 public:
  static Watcher& instance() {
    static auto* watcher = new Watcher;  // lives as long as the process: exit does not wait for it
    return *watcher;
  }
  void watch(std::vector<Array> arrays, std::function<void(std::exception_ptr)> then) {
    const std::lock_guard lock(mutex_);
    if (!started_) std::thread([this] { run(); }).detach();
    started_ = true;
    queue_.emplace_back(std::move(arrays), std::move(then));
    added_.notify_one();
  }

 private:
  void run() {
    for (;;) {
      std::unique_lock lock(mutex_);
      added_.wait(lock, [&] { return !queue_.empty(); });
      auto [arrays, then] = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      const std::exception_ptr error = outcome(arrays);
      arrays.clear();
      then(error);
    }
  }

  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<std::pair<std::vector<Array>, std::function<void(std::exception_ptr)>>> queue_;
  bool started_ = false;
};

void event_destroy(abi::EventDestroy& args) { delete args.event; }

void event_is_ready(abi::EventIsReady& args) { args.is_ready = is_over(*args.event); }

void event_error(abi::EventError& args) { wait_for(*args.event); }

void event_await(abi::EventAwait& args) { wait_for(*args.event); }

void event_on_ready(abi::EventOnReady& args) {
  const abi::Event& event = *args.event;
  const auto tell = [callback = args.callback, user = args.user](const std::exception_ptr& error) {
    callback(error ? make_error(error) : nullptr, user);
  };
  if (event.gate)
    event.gate->then([tell] { tell(nullptr); });
  else if (is_over(event))
    tell(outcome(event.arrays));
  else
    Watcher::instance().watch(event.arrays, tell);
}

}  // namespace

void add_event_functions(Table& table) {
  using F = abi::Function;
  table.set(F::error_destroy, reinterpret_cast<void*>(&error_destroy));
  table.set(F::error_message, reinterpret_cast<void*>(&error_message));
  table.add<error_code>(F::error_code);
  table.add<event_destroy>(F::event_destroy);
  table.add<event_is_ready>(F::event_is_ready);
  table.add<event_error>(F::event_error);
  table.add<event_await>(F::event_await);
  table.add<event_on_ready>(F::event_on_ready);
}

}  // namespace capibara::pjrt::server
