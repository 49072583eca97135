// Which processes of a job are alive: the server of the key-value store keeps the roll, every process reports to it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/processes/key_value_store.h"

namespace capibara {

// The entry of one process on the roll.
struct MemberState {
  enum State : uint64_t { alive, left, dead };
  int process = 0;
  State state = alive;
  int64_t silent_ms = 0;  // since its last report, as far as the server saw time pass
  std::string status;     // its last report
};

// The server's side. A process that reports is alive until it announces its departure, or its connection closes without
// that.
class MemberRoll {
 public:
  void report(int process, const std::string& status);
  void leave(int process, const std::string& status);
  void lose(int process);  // its connection closed
  std::vector<MemberState> states() const;
  // How often each process that is alive and not silent has reported.
  std::map<int, uint64_t> reports() const;

 private:
  struct Entry {
    MemberState::State state = MemberState::alive;
    std::chrono::steady_clock::duration silent{};
    std::string status;
    uint64_t reports = 0;
  };
  Entry& hear(int process, const std::string& status);

  mutable std::mutex mutex_;
  std::map<int, Entry> entries_;
  std::optional<std::chrono::steady_clock::time_point> last_;
};

std::string encode_members(const std::vector<MemberState>& states);
std::vector<MemberState> decode_members(const std::string& text);

// A process's own connection to the roll.
class Heartbeat {
 public:
  // Raises RuntimeError where the store does not answer.
  static std::unique_ptr<Heartbeat> connect(const std::string& address, const JobMember& member, int timeout_seconds);
  virtual ~Heartbeat() = default;
  // Reports and returns the roll; empty if the server is gone or silent for the timeout.
  virtual std::optional<std::vector<MemberState>> beat(const std::string& status) = 0;
  // Also marks this process as having left cleanly.
  virtual std::optional<std::vector<MemberState>> leave(const std::string& status) = 0;
};

}  // namespace capibara
