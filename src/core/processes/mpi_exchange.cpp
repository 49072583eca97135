// The comm thread: runs calls one at a time, in the order in which the program started them.
#include "core/processes/mpi_exchange.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <numeric>
#include <string_view>

#include <capibara/distributed.h>

#include "core/processes/mpi_module.h"
#include "core/processes/pending.h"
#include "core/runtime/digest.h"

namespace capibara::processes {

namespace {

constexpr std::size_t max_text_bytes = 1000;

// A signature, equal on all processes that move the same data; never 0.
template <class... Parts>
uint64_t sign(const Call& call, const Parts&... parts) {
  if (!call.checked) return 0;
  const Digest made = digest(concat(call.operation, '\n', concat(parts, '\n')...));
  uint64_t number = 0;
  std::memcpy(&number, made.bytes.data(), sizeof number);
  return number | 1;
}

bool wants_windows() {
  const char* given = std::getenv("CAPIBARA_MPI_WINDOWS");
  return !given || std::string_view(given) != "0";
}

// Waits for work of the comm thread that the watch does not cover yet.
template <class Result>
Result get_in_time(std::future<Result> future, int timeout_seconds, const char* what) {
  if (future.wait_for(std::chrono::seconds(timeout_seconds)) != std::future_status::ready) {
    throw RuntimeError(
        concat("DEADLINE_EXCEEDED: distributed.initialize: ", what, " was not over within ", timeout_seconds, " s"));
  }
  return future.get();
}

}  // namespace

MpiExchange::MpiExchange(int timeout_seconds) : mpi_(require_mpi()) {
  auto started = std::make_shared<std::promise<void>>();
  std::future<void> future = started->get_future();
  thread_ = std::thread([this, started] {
    try {
      start_mpi();
    } catch (...) {
      started->set_exception(std::current_exception());
      return;
    }
    started->set_value();
    run();
  });
  try {
    get_in_time(std::move(future), timeout_seconds, "the start of MPI");
  } catch (...) {
    thread_.detach();
    throw;
  }
}

MpiExchange::~MpiExchange() {
  if (thread_.joinable()) thread_.detach();
}

void MpiExchange::start_mpi() {
  check_mpi(mpi_.start(&process_id_, &process_count_));
  progress_ = std::make_unique<Progress>(process_count_);
  std::vector<int> all(static_cast<std::size_t>(process_count_));
  std::iota(all.begin(), all.end(), 0);
  channels_[all] = make_channel(all);
}

std::string MpiExchange::description() const {
  return concat(describe_mpi(), ", ", windows_ ? "shared windows" : "messages", ", ", process_count_, " processes");
}

bool MpiExchange::lets_go_of_memory(const std::vector<int>& group) const {
  const std::lock_guard lock(mutex_);
  return in_windows_.contains(group);
}

std::unique_ptr<Channel> MpiExchange::make_channel(const std::vector<int>& members) {
  mpi::Group* group = nullptr;
  const auto size = static_cast<int>(members.size());
  const auto position = static_cast<int>(std::find(members.begin(), members.end(), process_id_) - members.begin());
  bool near = false;
  check_mpi(mpi_.make_group(members.data(), size, &group, &near));
  if (size == process_count_) on_one_node_ = near;
  auto messages = make_message_channel(mpi_, group, size, position, *progress_);
  if (!near || size == 1) return messages;
  // All or none: if one process has no window, all send messages.
  auto window = wants_windows() ? make_window_channel(mpi_, group, size, position, *progress_) : nullptr;
  const auto own = static_cast<std::byte>(window != nullptr);
  std::vector<std::byte> all(members.size());
  messages->all_gather(&own, all.data(), 1);
  if (std::count(all.begin(), all.end(), std::byte{0}) != 0) return messages;
  windows_ = true;
  const std::lock_guard lock(mutex_);
  in_windows_.insert(members);
  return window;
}

Channel& MpiExchange::channel(const std::vector<int>& members) {
  std::unique_ptr<Channel>& slot = channels_[members];
  if (!slot) slot = make_channel(members);
  return *slot;
}

void MpiExchange::run() {
  for (;;) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      for (int i = 0; i < progress_->spins() && queue_.empty() && !ending_; ++i) {  // the next call often comes soon
        lock.unlock();
        lock.lock();
      }
      changed_.wait(lock, [&] { return ending_ || !queue_.empty(); });
      if (queue_.empty()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
  }
}

std::vector<int> MpiExchange::members_of(const Call& call) const {
  if (!call.group.empty()) return call.group;
  std::vector<int> all(static_cast<std::size_t>(process_count_));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

void MpiExchange::check(const Call& call, int root) const {
  const std::vector<int> members = members_of(call);
  std::vector<int> sorted = members;
  std::sort(sorted.begin(), sorted.end());
  const bool distinct = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  if (!distinct || sorted.front() < 0 || sorted.back() >= process_count_) {
    throw ValueError(concat(call.operation, ": the group must name processes below ", process_count_, " once each"));
  }
  if (std::find(members.begin(), members.end(), process_id_) == members.end()) {
    throw ValueError(concat(call.operation, ": process ", process_id_, " is not of the group that it calls"));
  }
  if (root < -1 || root >= static_cast<int>(members.size())) {
    throw ValueError(concat(call.operation, ": a position below ", members.size(), " is expected, got ", root));
  }
}

Pending MpiExchange::post(const Call& call, uint64_t signature, Work work) {
  check(call, -1);
  auto state = std::make_shared<Pending::State>();
  state->call = call;
  state->spins = progress_->spins();
  std::lock_guard lock(mutex_);
  state->watch = watch_;
  if (watch_) {
    if (const auto failure = watch_->failure()) throw DistributedError(*failure);
    state->number = watch_->begin(call);
  }
  queue_.push_back([this, state, signature, work = std::move(work)] { work_off(*state, work, signature); });
  changed_.notify_one();
  return Pending(state);
}

void MpiExchange::work_off(Pending::State& job, const Work& work, uint64_t signature) {
  try {
    // After a failure MPI is not touched again.
    if (job.watch && job.watch->has_failed()) throw DistributedError(*job.watch->failure());
    Channel& channel = this->channel(members_of(job.call));
    try {
      channel.begin(signature);
      work(channel);
    } catch (const Mismatch& other) {
      const int process = members_of(job.call)[static_cast<std::size_t>(other.position)];
      const std::string theirs = job.watch ? job.watch->last_call_of(process) : "something else";
      const std::string text =
          concat(job.watch ? job.watch->name_of(process) : concat("process ", process), " calls ", theirs, ", process ",
                 process_id_, " ", job.call.operation, job.call.line.empty() ? "" : concat(" (", job.call.line, ")"),
                 "; all processes must start the same collectives in the same order, with arrays of one type");
      if (job.watch) job.watch->fail(text, process);
      throw DistributedError(text);
    }
    job.finish();
  } catch (const DistributedError&) {
    if (job.call.owner)
      new std::shared_ptr<const void>(job.call.owner);  // never freed: the network may still write there
    job.finish(std::current_exception());
  } catch (...) {
    job.finish(std::current_exception());
  }
}

Pending MpiExchange::all_gather(const Call& call, const std::byte* from, std::byte* to, std::size_t bytes) {
  return post(call, sign(call, "all_gather", bytes), [=](Channel& channel) { channel.all_gather(from, to, bytes); });
}

Pending MpiExchange::all_to_all(const Call& call, const std::byte* from, std::byte* to, std::size_t bytes) {
  return post(call, sign(call, "all_to_all", bytes), [=](Channel& channel) { channel.all_to_all(from, to, bytes); });
}

Pending MpiExchange::broadcast(const Call& call, std::byte* data, std::size_t bytes, int root) {
  check(call, root);
  return post(call, sign(call, "broadcast", bytes, root),
              [=](Channel& channel) { channel.broadcast(data, bytes, root); });
}

Pending MpiExchange::permute(const Call& call, const std::byte* from, std::byte* to, std::size_t bytes, int source,
                             int target) {
  check(call, source);
  check(call, target);
  return post(call, sign(call, "permute", bytes),
              [=](Channel& channel) { channel.permute(from, to, bytes, source, target); });
}

Pending MpiExchange::barrier(const Call& call) {
  return post(call, sign(call, "barrier"), [](Channel& channel) { channel.barrier(); });
}

std::string MpiExchange::tell_all(const std::string& text, int timeout_seconds) {
  auto promise = std::make_shared<std::promise<std::string>>();
  std::future<std::string> future = promise->get_future();
  {
    std::lock_guard lock(mutex_);
    queue_.push_back([this, promise, text] {
      try {
        std::string buffer = text;
        buffer.resize(max_text_bytes);
        channels_.begin()->second->broadcast(reinterpret_cast<std::byte*>(buffer.data()), buffer.size(), 0);
        promise->set_value(buffer.c_str());
      } catch (...) {
        promise->set_exception(std::current_exception());
      }
    });
    changed_.notify_one();
  }
  return get_in_time(std::move(future), timeout_seconds, "the meeting of the processes");
}

void MpiExchange::set_watch(std::shared_ptr<Watch> watch) {
  std::lock_guard lock(mutex_);
  watch_ = std::move(watch);
  progress_->set_watch(watch_.get());
}

bool MpiExchange::shut_down(int timeout_seconds) {
  auto ended = std::make_shared<std::promise<void>>();
  std::future<void> future = ended->get_future();
  {
    std::lock_guard lock(mutex_);
    if (watch_ && watch_->has_failed()) return false;
    queue_.push_back([this, ended] {
      mpi_.stop();
      ended->set_value();
    });
    ending_ = true;
    changed_.notify_one();
  }
  if (future.wait_for(std::chrono::seconds(timeout_seconds)) != std::future_status::ready) return false;
  thread_.join();
  return true;
}

}  // namespace capibara::processes
