// What a process tells the `capibara launch` that started it: when it failed, or which other process did.
#pragma once

namespace capibara::processes {

// The number of a pipe to the launcher's part in this machine, in the environment of what it starts.
inline constexpr char launch_report_variable[] = "CAPIBARA_LAUNCH_REPORT";

// It has met the others, and will end by itself where one of them fails.
void report_meeting();
// An exception ends this process. Only the first report of a failure counts.
void report_failure();
// Another process has failed or does not come, which ends this one; -1: which one it was is told by another.
void report_blame(int process);

}  // namespace capibara::processes
