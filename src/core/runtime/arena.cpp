// Size classes, the cache of freed blocks, and the limits that keep the process alive.
#include "core/runtime/arena.h"

#include <capibara/error.h>

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <limits>
#include <list>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/profile/recorder.h"
#include "core/runtime/arena_blocks.h"
#include "core/runtime/small_blocks.h"

#if defined(__SANITIZE_ADDRESS__)
#define CAPIBARA_ARENA_CACHES 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CAPIBARA_ARENA_CACHES 0
#endif
#endif
#ifndef CAPIBARA_ARENA_CACHES
#define CAPIBARA_ARENA_CACHES 1  // AddressSanitizer finds uses of freed memory only where it is freed
#endif

namespace capibara::arena {

namespace {

constexpr std::size_t huge_page = 2 * 1024 * 1024;
constexpr std::size_t slack = 256 * 1024 * 1024;    // cached bytes beyond the peak of live ones
constexpr std::size_t examined = 32 * 1024 * 1024;  // requests from this size on check the available memory
constexpr std::size_t reserve = 64 * 1024 * 1024;   // left to the rest of the process

// Eight sizes for each power of two; from 2 MiB on whole huge pages.
std::size_t class_of(std::size_t bytes) {
  std::size_t step = std::max(std::bit_floor(bytes) / 8, std::size_t{4096});
  if (bytes >= huge_page) step = std::max(step, huge_page);
  return (bytes + step - 1) / step * step;
}

std::string read_file(const char* path) {
  std::string text;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  char bytes[4096];
  ssize_t count = read(file, bytes, sizeof bytes);
  if (count > 0) text.assign(bytes, static_cast<std::size_t>(count));
  close(file);
  return text;
}

std::optional<double> number_in(const char* path) {
  std::string text = read_file(path);
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  return std::strtod(text.c_str(), nullptr);
}

// Physical memory and swap, or the part of it that a container's cgroup allows.
double machine_bytes() {
  static const double bytes = [] {
    struct sysinfo info;
    double all = 1e18;
    if (sysinfo(&info) == 0)
      all = (static_cast<double>(info.totalram) + static_cast<double>(info.totalswap)) * info.mem_unit;
    for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
      if (std::optional<double> limit = number_in(path)) all = std::min(all, *limit);
    }
    return all;
  }();
  return bytes;
}

double available_bytes() {
  double available = 1e18;
  std::string text = read_file("/proc/meminfo");
  auto field = [&text](const char* name) {
    std::size_t position = text.find(name);
    return position == std::string::npos ? 0.0
                                         : std::strtod(text.c_str() + position + std::strlen(name), nullptr) * 1024;
  };
  if (text.find("MemAvailable:") != std::string::npos) available = field("MemAvailable:") + field("SwapFree:");
  std::optional<double> limit = number_in("/sys/fs/cgroup/memory.max"),
                        used = number_in("/sys/fs/cgroup/memory.current");
  if (limit && used) available = std::min(available, *limit - *used);
  return available;
}

struct Block {
  std::byte* data;
  std::size_t bytes;
};
struct Live {
  std::size_t bytes, wanted;
  std::string words;
};

std::byte* map_block(std::size_t bytes) {
#if CAPIBARA_ARENA_CACHES
  std::size_t margin = bytes >= huge_page ? huge_page : 0;
  void* memory = mmap(nullptr, bytes + margin, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto first = reinterpret_cast<std::uintptr_t>(memory);
  if (margin != 0) {
    std::uintptr_t aligned = (first + margin - 1) / margin * margin;
    if (aligned != first) munmap(memory, aligned - first);
    std::size_t behind = first + margin - aligned;
    if (behind != 0) munmap(reinterpret_cast<void*>(aligned + bytes), behind);
    madvise(reinterpret_cast<void*>(aligned), bytes, MADV_HUGEPAGE);
    first = aligned;
  }
  return reinterpret_cast<std::byte*>(first);
#else
  return static_cast<std::byte*>(std::aligned_alloc(64, bytes));
#endif
}

void unmap_block(const Block& block) {
#if CAPIBARA_ARENA_CACHES
  munmap(block.data, block.bytes);
#else
  std::free(block.data);
#endif
}

struct State {
  std::mutex mutex;
  std::unordered_map<std::byte*, Live> live;
  std::size_t live_bytes = 0, peak_live = 0;
  // Cached blocks, the oldest first, and the same by size.
  std::list<Block> cached;
  std::unordered_map<std::size_t, std::deque<std::list<Block>::iterator>> by_class;
  std::size_t cached_bytes = 0;

  std::byte* reuse(std::size_t bytes) {
    auto it = by_class.find(bytes);
    if (it == by_class.end() || it->second.empty()) return nullptr;
    auto block = it->second.back();  // the one most recently used, still in the processor's caches
    it->second.pop_back();
    std::byte* data = block->data;
    cached.erase(block);
    cached_bytes -= bytes;
    return data;
  }
  void shrink(std::size_t keep) {
    while (cached_bytes > keep) {
      Block block = cached.front();
      by_class[block.bytes].pop_front();
      cached.pop_front();
      cached_bytes -= block.bytes;
      unmap_block(block);
    }
  }
  // Cached bytes that may stay alongside `more` new live ones.
  std::size_t room(std::size_t more) const {
    std::size_t worst = std::max(peak_live, live_bytes + more) + slack, used = live_bytes + more;
    return worst > used ? worst - used : 0;
  }
};

// Never freed: arrays may outlive every static object.
State& state() {
  static State* const made = [] {
    static State* fresh = new State;
    pthread_atfork([] { fresh->mutex.lock(); }, [] { fresh->mutex.unlock(); }, [] { fresh->mutex.unlock(); });
    return fresh;
  }();
  return *made;
}

// True if a fresh block of this size can be allocated without starving the machine. Shrinks the cache if that helps.
bool affordable(State& all, std::size_t bytes) {
  auto wanted = static_cast<double>(bytes), live = static_cast<double>(all.live_bytes);
  if (wanted > machine_bytes() || wanted + live > machine_bytes()) return false;
  if (bytes < examined) return true;
  if (wanted + reserve <= available_bytes()) return true;
  all.shrink(0);
  return wanted + reserve <= available_bytes();
}

void record_block(int64_t bytes, std::size_t live, const std::byte* data, std::string_view words) {
  profile::record_memory(bytes, static_cast<int64_t>(live), data, words);
}

thread_local std::string_view current_purpose = "allocate";

// Briefly negative if one thread frees memory that another has not reported yet.
std::atomic<std::ptrdiff_t> in_use{0}, peak_in_use{0};

void count(std::ptrdiff_t bytes) noexcept {
  const std::ptrdiff_t now = in_use.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::ptrdiff_t peak = peak_in_use.load(std::memory_order_relaxed);
  while (bytes > 0 && now > peak && !peak_in_use.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

}  // namespace

std::byte* take(std::size_t bytes, std::string_view words) {
  if (bytes > std::numeric_limits<std::size_t>::max() / 4) throw_out_of_memory(words, static_cast<double>(bytes));
  std::size_t rounded = class_of(std::max<std::size_t>(bytes, 1));
  State& all = state();
  {
    std::lock_guard lock(all.mutex);
    std::byte* data = all.reuse(rounded);
    if (!data && affordable(all, rounded)) {
      all.shrink(all.room(rounded));
      data = map_block(rounded);
      if (!data) {
        all.shrink(0);
        data = map_block(rounded);
      }
    }
    if (data) {
      all.live.emplace(data, Live{rounded, bytes, std::string(words)});
      all.live_bytes += rounded;
      all.peak_live = std::max(all.peak_live, all.live_bytes);
      count(static_cast<std::ptrdiff_t>(rounded));
      if (profile::active()) record_block(static_cast<int64_t>(rounded), all.live_bytes, data, words);
      return data;
    }
  }
  throw_out_of_memory(words, static_cast<double>(bytes));
}

void give(std::byte* data) {
  State& all = state();
  std::lock_guard lock(all.mutex);
  auto it = all.live.find(data);
  if (it == all.live.end()) throw InternalError("arena: a block was given back that is not in use");
  Block block{data, it->second.bytes};
  all.live.erase(it);
  all.live_bytes -= block.bytes;
  count(-static_cast<std::ptrdiff_t>(block.bytes));
  if (profile::active()) record_block(-static_cast<int64_t>(block.bytes), all.live_bytes, data, {});
  if (!CAPIBARA_ARENA_CACHES) return unmap_block(block);
  all.by_class[block.bytes].push_back(all.cached.insert(all.cached.end(), block));
  all.cached_bytes += block.bytes;
  all.shrink(all.room(0));
}

void trim(std::size_t keep) {
  State& all = state();
  std::lock_guard lock(all.mutex);
  all.shrink(keep);
  if (keep > 0) return;
  all.peak_live = all.live_bytes;
  peak_in_use.store(in_use.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

Usage usage() {
  count_small_blocks();
  const auto bytes_of = [](const std::atomic<std::ptrdiff_t>& bytes) {
    return static_cast<std::size_t>(std::max<std::ptrdiff_t>(bytes.load(std::memory_order_relaxed), 0));
  };
  const std::size_t held = bytes_of(in_use);
  State& all = state();
  std::lock_guard lock(all.mutex);
  return {all.live_bytes,       all.live.size(), all.cached_bytes,
          all.cached.size(),    all.peak_live,   held - std::min(held, kept_small_bytes()),
          bytes_of(peak_in_use)};
}

void count_small(std::ptrdiff_t bytes) noexcept { count(bytes); }

std::vector<BlockInUse> blocks_in_use() {
  State& all = state();
  std::lock_guard lock(all.mutex);
  std::vector<BlockInUse> blocks;
  for (const auto& [data, block] : all.live) blocks.push_back({data, block.bytes, block.words});
  return blocks;
}

Purpose::Purpose(std::string_view words) : before_(current_purpose) { current_purpose = words; }
Purpose::~Purpose() { current_purpose = before_; }
std::string_view Purpose::current() { return current_purpose; }

std::string readable_bytes(double bytes) {
  static constexpr const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(units)) {
    bytes /= 1024;
    ++unit;
  }
  char text[64];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
  return text;
}

void throw_out_of_memory(std::string_view words, double bytes) {
  std::vector<std::pair<std::size_t, std::string>> blocks;
  double live = 0;
  {
    State& all = state();
    std::lock_guard lock(all.mutex);
    live = static_cast<double>(all.live_bytes);
    for (const auto& [data, block] : all.live) blocks.emplace_back(block.wanted, block.words);
  }
  std::sort(blocks.begin(), blocks.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text = concat(words, ": out of memory: ", readable_bytes(bytes), " wanted; this machine has ",
                            readable_bytes(machine_bytes()), ", of which ",
                            readable_bytes(std::min(available_bytes(), machine_bytes())), " are available and ",
                            readable_bytes(live), " are held by ", blocks.size(), " large arrays");
  for (std::size_t i = 0; i < std::min<std::size_t>(blocks.size(), 5); ++i) {
    text += concat(i == 0 ? "; the largest: " : ", ", readable_bytes(static_cast<double>(blocks[i].first)), " (",
                   blocks[i].second, ")");
  }
  throw RuntimeError(text);
}

}  // namespace capibara::arena
