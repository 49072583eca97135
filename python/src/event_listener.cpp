// jax.monitoring: passes the core's events about traces, compilations and its disk cache to a Python function.
#include "profiles.h"

#include <mutex>

#include "core/runtime/listeners.h"
#include "interpreter_lock.h"

namespace capibara::python {

namespace {

struct LateEvent {
  const char* event;
  std::string function;
  double begin, end;
};

nb::object& python_listener() {
  static auto* listener = new nb::object;  // never freed: Python may be finalized before the process exits
  return *listener;
}

std::mutex events_mutex;
std::vector<LateEvent> waiting_events;

// Threads that must not take the GIL report cache events too: these are queued until the compilation ends, which
// happens on the thread that requested it.
void tell_python(const char* event, const std::string& function, double begin, double end) {
  std::vector<LateEvent> events;
  {
    const std::lock_guard lock(events_mutex);
    waiting_events.push_back({event, function, begin, end});
    if (end == 0) return;
    events.swap(waiting_events);
  }
  if (!Py_IsInitialized() || on_pool_thread()) return;
  const InterpreterLock lock;
  const nb::object listener = python_listener();
  if (!listener.is_valid() || listener.is_none()) return;
  for (const LateEvent& one : events) {
    try {
      if (one.end == 0)
        listener(one.event, nb::none(), nb::none(), nb::none());
      else
        listener(one.event, one.function.c_str(), one.begin, one.end);
    } catch (nb::python_error& error) {
      error.restore();
      PyErr_WriteUnraisable(listener.ptr());
    }
  }
}

}  // namespace

void bind_event_listener(nb::module_& m) {
  // A function of (event, function, begin, end), or None; the last three are None for events that have no duration.
  m.def(
      "set_event_listener",
      [](nb::object listener) {
        const bool none = listener.is_none();
        python_listener() = std::move(listener);
        event_listener.store(none ? nullptr : &tell_python);
      },
      nb::arg("listener").none());
}

}  // namespace capibara::python
