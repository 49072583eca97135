// The watch: every process reports its state, and learns which others died, are silent or are missing.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/processes/exchange.h"
#include "core/processes/members.h"

namespace capibara::processes {

struct WatchOptions {
  int heartbeat_seconds = 10;     // of silence before a process counts as dead
  double collective_seconds = 0;  // of waiting before the others count as stalled; 0: never, only a warning
  double warning_seconds = 30;    // of waiting before a warning names who is missing
};

// A process's report about itself.
struct Report {
  std::string host, pid;
  uint64_t calls = 0;           // collectives that it has reached
  std::string operation, line;  // of the last one
  std::string waiting;          // "1" while it waits there
  std::string where;            // the line at which its main thread was last seen, where the host language knows
  std::string ending;           // why it leaves, if it does: an exception's text
  std::string failure;          // what it has found wrong
};
std::string encode_report(const Report& report);
Report decode_report(const std::string& text);

class Watch {
 public:
  Watch(std::unique_ptr<Heartbeat> heartbeat, int process_id, int process_count, const WatchOptions& options);
  ~Watch();
  Watch(const Watch&) = delete;

  // Registers the start of a collective; returns its number, for `end`.
  uint64_t begin(const Call& call);
  void end(uint64_t number);
  // Empty, or what went wrong in the group: every wait raises it from then on. Cheap.
  std::optional<std::string> failure();
  // `process` is the one to blame; -1 if another process reports which one it is.
  void fail(const std::string& text, int process = -1);
  bool has_failed() const { return failed_; }

  // Reports now, and reads what the others have reported.
  void refresh() { beat_once(false); }
  // Checks the roll for a process that has left or not arrived at this call; may warn, may fail.
  void examine(uint64_t number, const Call& call);

  void set_where(const std::string& where);
  void set_ending(const std::string& ending);
  bool ends_by_failure() const;  // its own, or another's
  // Announces the exit, so that the end of this process is not a failure, and waits until all others have done so too,
  // one died, or this process ends by an exception. False: they did not arrive in time.
  bool leave(int timeout_seconds);
  std::string name_of(int process);  // "process 2 (host, pid 7)"
  // Another process's current call, after a fresh report.
  std::string last_call_of(int process);

 private:
  void run();
  bool beat_once(bool leaving);  // false: the server is gone
  bool everybody_left() const;
  bool all_have_read(std::chrono::steady_clock::time_point since) const;  // what was reported by then
  void look_for_dead();
  struct Missing;
  Missing missing_from(uint64_t number, const Call& call, bool& hopeless) const;
  std::string describe(const MemberState& member) const;
  std::string who_waits(const std::vector<int>& besides) const;

  const std::unique_ptr<Heartbeat> heartbeat_;
  const int process_id_, process_count_;
  const WatchOptions options_;
  mutable std::mutex mutex_;  // of all below
  std::mutex talking_;        // one report at a time
  std::condition_variable changed_;
  Report own_;
  std::vector<MemberState> members_;
  std::chrono::steady_clock::time_point since_;  // of the call that is waited for
  bool warned_ = false, ending_ = false, left_ = false;
  std::string failure_;
  std::atomic<bool> failed_{false};
  std::thread thread_;
};

}  // namespace capibara::processes
