// Listeners for traces and compilations as they happen, under the names of jax.monitoring; none by default.
#pragma once

#include <atomic>
#include <chrono>
#include <string>

namespace capibara {

// An event without a duration has begin and end 0. Times are seconds since 1970.
using EventListener = void (*)(const char* event, const std::string& function, double begin, double end);
inline constinit std::atomic<EventListener> event_listener{nullptr};

inline void tell_event(const char* event) {
  if (const EventListener listener = event_listener.load(std::memory_order_relaxed)) listener(event, "", 0, 0);
}
// Reports an event that began at `start` and ends now.
inline void tell_duration(const char* event, const std::string& function, std::chrono::steady_clock::time_point start) {
  if (const EventListener listener = event_listener.load(std::memory_order_relaxed)) {
    const double end = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    listener(event, function, end - std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
             end);
  }
}

}  // namespace capibara
