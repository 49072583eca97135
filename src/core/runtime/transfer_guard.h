// Transfer guards: whether arrays may move between host and devices implicitly.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace capibara::transfer {

enum class Direction { host_to_device, device_to_device, device_to_host };
inline constexpr int direction_count = 3;

// "allow", "log" and "disallow" apply to implicit transfers; "log_explicit" and "disallow_explicit" to all.
enum class Guard { allow, log, disallow, log_explicit, disallow_explicit };
// Raises ValueError that lists the names.
Guard guard_named(const std::string& name);

void set_default(Direction direction, Guard guard);                    // of the process
void set_for_thread(Direction direction, std::optional<Guard> guard);  // nothing: the process's
std::optional<Guard> for_thread(Direction direction);

// Transfers of this thread count as explicit while this lives: device_put, device_get, and the library's own.
class Explicit {
 public:
  Explicit();
  ~Explicit();
  Explicit(const Explicit&) = delete;

 private:
  bool before_;
};

bool is_guarded(Direction direction);  // true if check may do anything on this thread

// Raises RuntimeError or writes a line to stderr, depending on the guard; `what` describes the array.
void check(Direction direction, const std::function<std::string()>& what);

}  // namespace capibara::transfer
