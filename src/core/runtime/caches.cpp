// The list of tables that clear_caches() empties.
#include "core/runtime/caches.h"

#include <atomic>
#include <mutex>
#include <vector>

namespace capibara {

namespace {

struct Tables {
  std::mutex mutex;
  std::vector<std::function<void()>> clear;
};

Tables& tables() {
  static auto* all = new Tables;  // never freed: tables of static duration may outlive it otherwise
  return *all;
}

std::atomic<unsigned> generation{0};

}  // namespace

void on_clear_caches(std::function<void()> clear) {
  std::lock_guard lock(tables().mutex);
  tables().clear.push_back(std::move(clear));
}

void clear_caches() {
  generation.fetch_add(1);
  std::vector<std::function<void()>> all;
  {
    std::lock_guard lock(tables().mutex);
    all = tables().clear;
  }
  for (const auto& clear : all) clear();  // outside the lock: what is freed may be anything
}

unsigned cache_generation() { return generation.load(std::memory_order_relaxed); }

}  // namespace capibara
