// State of a launch's processes: their output lines, how each ended, and which one failed first.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>

namespace capibara::command {

class Members {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Members(int count) : count_(count) {}

  // A line of mpirun's output, without its end.
  void take(const std::string& line, FILE* to);

  // When to kill the remaining processes because one has failed; empty if none has.
  std::optional<Clock::time_point> deadline() const;
  // From now on processes exit because they were signalled: their exit codes carry no information.
  void set_ending() { ending_ = true; }
  // The exit code of the process that failed first or, if it has none of its own, of the first one that it stopped; 1
  // if a process vanished.
  int code() const;
  // A description of the process that failed first; empty if none has.
  std::string failure() const;

 private:
  struct Member {
    bool has_met = false, has_reported = false;
    std::optional<int> code;  // set once it has ended
    bool by_itself = true;    // false: it was signalled to exit
  };
  // The earliest sign of a failure.
  struct First {
    int64_t time_ns = 0;
    int process = -1;
  };

  void take_report(int number, const std::string& text);
  void note_failure(int64_t time_ns, int process);
  void end(int number, int64_t time_ns, int code);
  bool all_ended() const;
  void pass_own(const std::string& line, FILE* to) const;

  const int count_;
  std::map<int, Member> members_;
  int first_code_ = 0;  // the first nonzero one of a process that exited on its own
  bool ending_ = false;
  std::optional<First> first_;
  Clock::time_point last_sign_;  // of the failure
};

}  // namespace capibara::command
