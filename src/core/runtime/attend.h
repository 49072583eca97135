// Work that the user may want to stop: it runs on a thread of its own, while the calling thread looks for signals.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

namespace capibara {

// True if work that is expected to take this long should not run on this thread, because it may be interrupted
// in the meantime.
bool should_attend(double nanoseconds);

// Runs the work on another thread and returns when it is done; rethrows its exception. While it waits, the host
// language's lock is released and its handler polled. An interruption sets the stop flag, which kernels and generated
// code check; work that does not end within some milliseconds (LAPACK, a plugin, a callback) is abandoned on its
// thread, so it must own all that it reads and writes.
void run_attended(const std::string& name, std::function<void(const std::atomic<int32_t>& stop)> work);

}  // namespace capibara
