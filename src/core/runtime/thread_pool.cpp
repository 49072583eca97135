// The pool: one job at a time, claimed by a counter; workers spin, then sleep on a futex.
#include "core/runtime/thread_pool.h"

#include <capibara/error.h>

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/runtime/background.h"
#include "core/runtime/interrupt.h"
#include "core/runtime/pause.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace capibara {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto spin_time = std::chrono::microseconds(50);

#if defined(__aarch64__)
std::uint64_t float_mode() {
  std::uint64_t value;
  asm volatile("mrs %0, fpcr" : "=r"(value));
  return value;
}
void set_float_mode(std::uint64_t value) { asm volatile("msr fpcr, %0" : : "r"(value)); }
#elif defined(__x86_64__)
std::uint64_t float_mode() { return _mm_getcsr(); }
void set_float_mode(std::uint64_t value) { _mm_setcsr(static_cast<unsigned>(value)); }
#else
std::uint64_t float_mode() { return 0; }
void set_float_mode(std::uint64_t) {}
#endif

void futex_wait(std::atomic<int32_t>& word, int32_t expected) {
  syscall(SYS_futex, reinterpret_cast<int32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}
void futex_wake(std::atomic<int32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<int32_t*>(&word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

thread_local bool inside_region = false;
thread_local bool pool_thread = false;

// ---- how many threads -------------------------------------------------------------------------------------------

std::vector<int> allowed_processors() {
  std::vector<int> list;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &set)) list.push_back(i);
    }
  }
  return list;
}

std::string read_small_file(const std::string& path) {
  std::string text;
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  char bytes[4096];
  ssize_t count;
  while (text.size() < 65536 && (count = read(file, bytes, sizeof bytes)) > 0)
    text.append(bytes, static_cast<std::size_t>(count));
  close(file);
  return text;
}

// The number of processors allowed by the quotas of this process's cgroup and all its ancestors, rounded up.
int cgroup_processors() {
  double least = 1e9;
  auto consider = [&least](double quota, double period) {
    if (quota > 0 && period > 0) least = std::min(least, quota / period);
  };
  std::string groups = read_small_file("/proc/self/cgroup");
  for (std::size_t begin = 0; begin < groups.size();) {
    std::size_t end = std::min(groups.find('\n', begin), groups.size());
    std::string line = groups.substr(begin, end - begin);
    begin = end + 1;
    std::size_t first = line.find(':'), second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    bool unified = controllers.empty();
    if (!unified && ("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
    while (true) {
      if (unified) {
        std::string limit = read_small_file("/sys/fs/cgroup" + path + "/cpu.max");
        if (!limit.empty() && limit[0] != 'm') {
          char* rest = nullptr;
          double quota = std::strtod(limit.c_str(), &rest);
          consider(quota, std::strtod(rest, nullptr));
        }
      } else {
        std::string base = "/sys/fs/cgroup/cpu" + path;
        consider(std::atof(read_small_file(base + "/cpu.cfs_quota_us").c_str()),
                 std::atof(read_small_file(base + "/cpu.cfs_period_us").c_str()));
      }
      if (path.empty() || path == "/") break;
      path.resize(path.rfind('/'));
    }
  }
  return least > 1e6 ? INT_MAX : std::max(1, static_cast<int>(std::ceil(least)));
}

int machine_threads() {
  int processors = static_cast<int>(allowed_processors().size());
  if (processors == 0) processors = static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, std::min(processors, cgroup_processors()));
}

int wanted_threads() {
  const char* text = std::getenv("CAPIBARA_NUM_THREADS");
  if (!text || !*text) return machine_threads();
  char* rest = nullptr;
  long count = std::strtol(text, &rest, 10);
  if (*rest != '\0' || count < 1 || count > 1024) {
    throw ValueError(concat("CAPIBARA_NUM_THREADS: expected a number of threads from 1 to 1024, got '", text, "'"));
  }
  return static_cast<int>(count);
}

// ---- the pool ---------------------------------------------------------------------------------------------------

class Pool {
 public:
  explicit Pool(int threads) : threads_(threads) {
    std::vector<int> processors = allowed_processors();
    bool pin = threads > 1 && static_cast<std::size_t>(threads) <= processors.size();
    // Workers are pinned to the processors after the creator's, so that several processes spread out.
    auto here = std::find(processors.begin(), processors.end(), sched_getcpu());
    if (here != processors.end()) std::rotate(processors.begin(), here, processors.end());
    // The host language's signals go to its own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int i = 1; i < threads; ++i) {
      try {
        workers_.emplace_back([this] { work(); });
      } catch (const std::system_error&) {
        break;  // the process may have no more threads: the existing ones do the work
      }
      if (!pin) continue;
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(processors[static_cast<std::size_t>(i)], &one);
      pthread_setaffinity_np(workers_.back().native_handle(), sizeof one, &one);
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  ~Pool() {
    stop_.store(true);
    announce();
    for (std::thread& worker : workers_) worker.join();
  }

  int threads() const { return threads_; }
  bool awake() const { return sleeping_.load(std::memory_order_relaxed) < static_cast<int32_t>(workers_.size()); }

  // False: busy or without workers, nothing was done.
  bool try_run(int64_t extent, int64_t grain, ParallelBody body, int32_t& status) {
    if (workers_.empty() || taken_.exchange(true, std::memory_order_acquire)) return false;
    body_.emplace(body);
    extent_ = extent;
    grain_ = grain;
    mode_ = float_mode();
    stop_flag_ = StopFlag::current();
    next_.store(0, std::memory_order_relaxed);
    status_.store(0, std::memory_order_relaxed);
    error_ = nullptr;
    open_.store(true);
    announce();
    take_chunks();
    open_.store(false);
    wait_for_workers();
    status = status_.load(std::memory_order_relaxed);
    std::exception_ptr error = std::move(error_);
    error_ = nullptr;
    taken_.store(false, std::memory_order_release);
    if (error) std::rethrow_exception(error);
    return true;
  }

 private:
  void announce() {
    generation_.fetch_add(1);
    if (sleeping_.load() > 0) futex_wake(generation_);
  }

  void take_chunks() {
    bool before = std::exchange(inside_region, true);
    while (true) {
      int64_t begin = next_.fetch_add(grain_, std::memory_order_relaxed);
      if (begin >= extent_) break;
      int32_t status = 0;
      try {
        poll_stop();
        status = (*body_)(begin, std::min(begin + grain_, extent_));
      } catch (...) {
        std::lock_guard lock(error_mutex_);
        if (!error_) error_ = std::current_exception();
        status = INT32_MAX;
      }
      if (status == 0) continue;
      next_.store(extent_, std::memory_order_relaxed);
      int32_t held = status_.load(std::memory_order_relaxed);
      while (held < status && !status_.compare_exchange_weak(held, status, std::memory_order_relaxed)) {
      }
    }
    inside_region = before;
  }

  // After `open_` is false no worker enters: one that counted itself in before looks at `open_` next.
  void wait_for_workers() {
    auto limit = Clock::time_point{};
    for (int spins = 0;; ++spins) {
      int32_t active = active_.load(std::memory_order_acquire);
      if (active == 0) return;
      pause_briefly();
      if (spins % 64 != 63) continue;
      auto now = Clock::now();
      if (limit == Clock::time_point{}) limit = now + spin_time;
      if (now < limit) continue;
      caller_waits_.store(true);
      while ((active = active_.load()) != 0) futex_wait(active_, active);
      caller_waits_.store(false);
      return;
    }
  }

  void work() {
    pthread_setname_np(pthread_self(), "capibara");
    pool_thread = true;
    int32_t seen = 0;
    while (true) {
      wait_for_news(seen);
      seen = generation_.load();
      if (stop_.load()) return;
      active_.fetch_add(1);
      if (open_.load()) {
        set_float_mode(mode_);
        const StopFlag flag(stop_flag_, false);
        take_chunks();
      }
      // The last one out wakes a caller that has gone to sleep; until `active_` is 0 the pool's state stays.
      if (active_.fetch_sub(1) == 1 && caller_waits_.load()) futex_wake(active_);
    }
  }

  void wait_for_news(int32_t seen) {
    auto limit = Clock::now() + spin_time;
    for (int spins = 0;; ++spins) {
      if (generation_.load(std::memory_order_acquire) != seen) return;
      pause_briefly();
      if (spins % 16 == 15 && Clock::now() >= limit) break;
    }
    sleeping_.fetch_add(1);
    while (generation_.load() == seen) futex_wait(generation_, seen);
    sleeping_.fetch_sub(1);
  }

  const int threads_;
  std::vector<std::thread> workers_;

  alignas(64) std::atomic<int32_t> generation_{0};  // counts announcements; workers sleep on it
  std::atomic<int32_t> sleeping_{0};
  std::atomic<bool> stop_{false};
  alignas(64) std::atomic<int64_t> next_{0};    // the first iteration not yet claimed
  alignas(64) std::atomic<int32_t> active_{0};  // workers that look at the job
  std::atomic<bool> open_{false}, caller_waits_{false};
  alignas(64) std::atomic<bool> taken_{false};  // some caller owns the job
  std::optional<ParallelBody> body_;
  int64_t extent_ = 0, grain_ = 1;
  std::uint64_t mode_ = 0;
  const std::atomic<int32_t>* stop_flag_ = nullptr;  // the caller's
  std::atomic<int32_t> status_{0};
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

// The pool lives until the process ends, its threads asleep. A child of fork() has none of them: it abandons the old
// pool and makes its own at first use.
std::atomic<Pool*> current{nullptr};
std::atomic<Pool*> abandoned{nullptr};
std::mutex creation;

Pool& pool() {
  if (Pool* there = current.load(std::memory_order_acquire)) return *there;
  std::lock_guard lock(creation);
  if (Pool* there = current.load()) return *there;
  static const int registered = pthread_atfork([] { creation.lock(); }, [] { creation.unlock(); },
                                               [] {
                                                 abandoned.store(current.exchange(nullptr));
                                                 creation.unlock();
                                               });
  static_cast<void>(registered);
  Pool* made = new Pool(wanted_threads());
  current.store(made, std::memory_order_release);
  return *made;
}

}  // namespace

int thread_count() { return pool().threads(); }

bool in_parallel_region() { return inside_region; }
bool on_pool_thread() { return pool_thread; }

int32_t parallel_for(int64_t extent, int64_t grain, ParallelBody body) {
  if (extent <= 0) return 0;
  grain = std::max<int64_t>(grain, 1);
  int32_t status = 0;
  if (extent > grain && !inside_region && pool().try_run(extent, grain, body, status)) return status;
  for (int64_t begin = 0; begin < extent && status == 0; begin += grain) {
    poll_stop();
    status = body(begin, std::min(begin + grain, extent));
  }
  return status;
}

int32_t parallel_for_cost(int64_t extent, double cost, ParallelBody body) {
  constexpr double cold = 20000, warm = 8000, chunk = 4000, max_chunk = 4e6;  // nanoseconds
  if (extent <= 0) return 0;
  const double total = cost * static_cast<double>(extent);
  if (extent == 1 || total < warm) return body(0, extent);
  // An interruption waits for one chunk at most.
  const double interruptible = total / max_chunk;
  double wanted = interruptible;
  if (!inside_region) {
    Pool& threads = pool();
    // Eight chunks for each thread even out what the others take from it, if they are worth a claim.
    const bool alone = threads.threads() == 1 || (total < cold && !threads.awake());
    if (!alone) wanted = std::max({std::min(total / chunk, 8.0 * threads.threads()), interruptible, 2.0});
  }
  if (wanted < 2) return body(0, extent);
  const int64_t chunks = static_cast<int64_t>(std::min(wanted, static_cast<double>(extent)));
  return parallel_for(extent, (extent + chunks - 1) / chunks, body);
}

void set_thread_count(int count) {
  if (count < 1 || count > 1024) throw ValueError(concat("set_thread_count: expected 1 to 1024, got ", count));
  pool();  // registers the fork handlers
  wait_for_background();
  std::lock_guard lock(creation);
  delete current.exchange(nullptr);
  current.store(new Pool(count));
}

}  // namespace capibara
