// What `capibara launch` and the processes that it starts tell each other.
#pragma once

#include <string>
#include <vector>

namespace capibara::command {

// Before the lines of a process: this byte, its number, a space; before what is reported of it: the other byte, its
// number, a space. Reports: "meet", "fail TIME", "blame TIME PROCESS" (processes/launch_report.h), "exit TIME CODE".
inline constexpr char line_mark = '\x1e', report_mark = '\x1d';

// Runs the program as one process of the group: marks its lines, reports its exit code, ends it when this process ends.
int run_member(const std::vector<std::string>& program);

// The part of a list of GPUs ("0,1,2,3") for one of several processes of a machine; the whole where there are too few.
std::string own_share(const std::string& list, int number, int count);

std::vector<char*> as_arguments(
    const std::vector<std::string>& words);  // for execvp: pointers into the words, then null

}  // namespace capibara::command
