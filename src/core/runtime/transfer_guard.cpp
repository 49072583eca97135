// The guards of the process and of each thread.
#include "core/runtime/transfer_guard.h"

#include <atomic>
#include <cstdio>

#include <capibara/error.h>

namespace capibara::transfer {

namespace {

constexpr const char* guard_names[] = {"allow", "log", "disallow", "log_explicit", "disallow_explicit"};
constexpr const char* direction_names[] = {"host-to-device", "device-to-device", "device-to-host"};

std::atomic<Guard> defaults[direction_count] = {Guard::allow, Guard::allow, Guard::allow};
thread_local std::optional<Guard> own[direction_count];
thread_local bool wanted = false;
std::atomic<bool> any_set{false};  // until then, nothing is guarded anywhere

}  // namespace

Guard guard_named(const std::string& name) {
  std::string known;
  for (int i = 0; i < 5; ++i) {
    if (name == guard_names[i]) return static_cast<Guard>(i);
    known += concat(known.empty() ? "" : ", ", "'", guard_names[i], "'");
  }
  throw ValueError(concat("new enum value must be None or in [", known, "], got ", name));
}

void set_default(Direction direction, Guard guard) {
  defaults[static_cast<int>(direction)] = guard;
  any_set = true;
}
void set_for_thread(Direction direction, std::optional<Guard> guard) {
  own[static_cast<int>(direction)] = guard;
  any_set = true;
}
std::optional<Guard> for_thread(Direction direction) { return own[static_cast<int>(direction)]; }

Explicit::Explicit() : before_(wanted) { wanted = true; }
Explicit::~Explicit() { wanted = before_; }

namespace {

Guard guard_of(Direction direction) {
  if (!any_set.load(std::memory_order_relaxed)) return Guard::allow;
  const int place = static_cast<int>(direction);
  return own[place] ? *own[place] : defaults[place].load(std::memory_order_relaxed);
}

}  // namespace

bool is_guarded(Direction direction) { return guard_of(direction) != Guard::allow; }

void check(Direction direction, const std::function<std::string()>& what) {
  const int place = static_cast<int>(direction);
  const Guard guard = guard_of(direction);
  if (guard == Guard::allow) return;
  if (guard == Guard::disallow_explicit || (guard == Guard::disallow && !wanted)) {
    throw RuntimeError(concat("INVALID_ARGUMENT: Disallowed ", direction_names[place], " transfer: ", what()));
  }
  if (guard == Guard::log_explicit || (guard == Guard::log && !wanted)) {
    std::fprintf(stderr, "%s transfer: %s\n", direction_names[place], what().c_str());
  }
}

}  // namespace capibara::transfer
