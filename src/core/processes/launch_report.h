// Reports from a process to the `capibara launch` that started it: that it failed, or which other process did.
#pragma once

namespace capibara::processes {

// Environment variable with the descriptor of the pipe to the part of the launcher on this machine.
inline constexpr char launch_report_variable[] = "CAPIBARA_LAUNCH_REPORT";

// This process has met the others, and will exit on its own if one of them fails.
void report_meeting();
// An exception ends this process. Only the first report of a failure counts.
void report_failure();
// Another process failed or does not arrive, which ends this one; -1: another process reports which one it was.
void report_blame(int process);

}  // namespace capibara::processes
