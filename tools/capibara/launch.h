// The protocol between `capibara launch` and the processes that it starts.
#pragma once

#include <string>
#include <vector>

namespace capibara::command {

// Output lines of a process begin with line_mark, its number and a space; reports about it with report_mark, its
// number and a space. Reports: "meet", "fail TIME", "blame TIME PROCESS" (processes/launch_report.h), "exit TIME CODE".
inline constexpr char line_mark = '\x1e', report_mark = '\x1d';

// Runs the program as one process of the group: marks its lines, reports its exit code, kills it when this one ends.
int run_member(const std::vector<std::string>& program);

// A process's share of its machine's list of GPUs ("0,1,2,3"); the whole list if there are too few for all.
std::string own_share(const std::string& list, int number, int count);

std::vector<char*> as_arguments(
    const std::vector<std::string>& words);  // for execvp: pointers into the words, then null

}  // namespace capibara::command
