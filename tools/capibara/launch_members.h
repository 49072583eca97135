// What `capibara launch` knows of its processes: their lines, how each ended, and which one failed first.
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

  // When the processes that are left are to be ended, since one has failed; none where none has.
  std::optional<Clock::time_point> deadline() const;
  // From now on processes end because they are told to: their codes say nothing.
  void set_told_to_end() { told_to_end_ = true; }
  // The code of the process that failed first, or of the first one that it stopped where it has none of its own; 1
  // where a process vanished.
  int code() const;
  // The process that failed first, in words; empty where none has.
  std::string failure() const;

 private:
  struct Member {
    bool has_met = false, has_reported = false;
    std::optional<int> code;  // where it has ended
    bool by_itself = true;    // else it was told to end
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
  int first_code_ = 0;  // the first that is not 0, of processes that ended by themselves
  bool told_to_end_ = false;
  std::optional<First> first_;
  Clock::time_point last_sign_;  // of the failure's course
};

}  // namespace capibara::command
