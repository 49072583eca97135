// Reads the output and reports of a launch's processes.
#include "launch_members.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include <capibara/error.h>

#include "launch.h"

namespace capibara::command {

namespace {

// How long processes have to exit on their own after the last sign of a failure. The watch notifies those that wait in
// a collective within a second or two, and they report it; then they print why, and exit.
constexpr std::chrono::milliseconds for_who_is_notified(10000), for_who_leaves(3000), for_others(500);

}  // namespace

void Members::take(const std::string& line, FILE* to) {
  const std::size_t space = line.find(' ');
  if (line.empty() || (line[0] != line_mark && line[0] != report_mark) || space == std::string::npos)
    return pass_own(line, to);
  const int number = std::atoi(line.c_str() + 1);
  if (line[0] == report_mark) return take_report(number, line.substr(space + 1));
  std::fprintf(to, "[%d] %s\n", number, line.c_str() + space + 1);
  std::fflush(to);
}

void Members::take_report(int number, const std::string& text) {
  std::istringstream words(text);
  std::string kind;
  int64_t time_ns = 0;
  int value = -1;
  words >> kind >> time_ns >> value;
  Member& member = members_[number];
  if (kind == "meet") {
    member.has_met = true;
  } else if (kind == "exit") {
    end(number, time_ns, value);
  } else if (kind == "fail" || kind == "blame") {
    member.has_reported = true;
    const int process = kind == "fail" ? number : value;
    if (process >= 0 && process < count_) note_failure(time_ns, process);
  }
}

void Members::note_failure(int64_t time_ns, int process) {
  if (ending_) return;
  last_sign_ = Clock::now();
  if (!first_ || time_ns < first_->time_ns) first_ = First{time_ns, process};
}

void Members::end(int number, int64_t time_ns, int code) {
  Member& member = members_[number];
  member.code = code;
  member.by_itself = !ending_;
  if (ending_ || code == 0) return;
  if (first_code_ == 0) first_code_ = code;
  if (member.has_reported && first_)
    last_sign_ = Clock::now();
  else
    note_failure(time_ns, number);
}

bool Members::all_ended() const {
  int ended = 0;
  for (const auto& [number, member] : members_) ended += member.code.has_value();
  return ended >= count_;
}

std::optional<Members::Clock::time_point> Members::deadline() const {
  if (!first_) return std::nullopt;
  std::chrono::milliseconds patience = for_others;
  for (const auto& [number, member] : members_) {
    if (member.code || !member.has_met || (number == first_->process && !member.has_reported)) continue;
    patience = std::max(patience, member.has_reported ? for_who_leaves : for_who_is_notified);
  }
  return last_sign_ + patience;
}

int Members::code() const {
  if (!first_) return all_ended() ? 0 : 1;
  const auto it = members_.find(first_->process);
  if (it != members_.end() && it->second.by_itself && it->second.code.value_or(0) != 0) return *it->second.code;
  return first_code_ != 0 ? first_code_ : 1;
}

std::string Members::failure() const {
  if (!first_) return {};
  const std::string name = concat("process ", first_->process);
  const auto it = members_.find(first_->process);
  if (it == members_.end() || !it->second.code || !it->second.by_itself)
    return concat(name, " failed first, and was ended");
  const int code = *it->second.code;
  if (code == 0) return concat(name, " ended with 0 while the others waited for it");
  return code > 128 ? concat(name, " was ended by signal ", code - 128, " (", strsignal(code - 128), ")")
                    : concat(name, " exited with ", code);
}

// Open MPI's runtime complains about each process that exits before MPI_Finalize, after the failure that explains it.
void Members::pass_own(const std::string& line, FILE* to) const {
  if (first_ && line.find("PMIX ERROR") != std::string::npos) return;
  std::fprintf(to, "%s\n", line.c_str());
  std::fflush(to);
}

}  // namespace capibara::command
