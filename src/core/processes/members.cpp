// The roll of the living, and the connection by which a process reports to it.
#include "core/processes/members.h"

#include <sys/socket.h>

#include <algorithm>

#include <capibara/error.h>

#include "core/processes/key_value_wire.h"

namespace capibara {

namespace {

// Time in which no one reports does not count as silence: the whole job, or the server, may have been
// stopped.
constexpr std::chrono::milliseconds max_step(2000);
constexpr int64_t max_silence_ms = 3000;           // of a process that is worth waiting for
constexpr uint64_t max_roll = uint64_t{64} << 20;  // bytes

class TcpHeartbeat final : public Heartbeat {
 public:
  explicit TcpHeartbeat(std::unique_ptr<key_value::Socket> socket) : socket_(std::move(socket)) {}

  std::optional<std::vector<MemberState>> beat(const std::string& status) override {
    return ask(key_value::Request::beat, status);
  }
  std::optional<std::vector<MemberState>> leave(const std::string& status) override {
    return ask(key_value::Request::leave, status);
  }

 private:
  std::optional<std::vector<MemberState>> ask(key_value::Request what, const std::string& status) {
    std::string request(1, static_cast<char>(what));
    key_value::add_number(request, 0);
    key_value::add_text(request, "");
    key_value::add_text(request, status);
    char answer = 0;
    if (!socket_->write(request) || !socket_->read(&answer, 1)) return std::nullopt;
    const std::optional<std::string> text = socket_->read_text(max_roll);
    if (!text || static_cast<key_value::Answer>(answer) != key_value::Answer::well) return std::nullopt;
    return decode_members(*text);
  }

  std::unique_ptr<key_value::Socket> socket_;
};

int64_t in_milliseconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}

uint64_t take_number(const std::string& text, std::size_t& at) {
  uint64_t number = 0;
  for (int i = 0; i < 8 && at < text.size(); ++i)
    number |= static_cast<uint64_t>(static_cast<unsigned char>(text[at++])) << (8 * i);
  return number;
}

}  // namespace

MemberRoll::Entry& MemberRoll::hear(int process, const std::string& status) {
  const auto now = std::chrono::steady_clock::now();
  const auto step = last_ ? std::min<std::chrono::steady_clock::duration>(now - *last_, max_step)
                          : std::chrono::steady_clock::duration::zero();
  last_ = now;
  for (auto& [other, entry] : entries_) entry.silent += step;
  Entry& entry = entries_[process];
  entry.silent = {};
  ++entry.reports;
  entry.status = status;
  return entry;
}

void MemberRoll::report(int process, const std::string& status) {
  std::lock_guard lock(mutex_);
  hear(process, status);
}

void MemberRoll::leave(int process, const std::string& status) {
  std::lock_guard lock(mutex_);
  Entry& entry = hear(process, status);
  if (entry.state == MemberState::alive) entry.state = MemberState::left;
}

void MemberRoll::lose(int process) {
  std::lock_guard lock(mutex_);
  const auto it = entries_.find(process);
  if (it == entries_.end() || it->second.state != MemberState::alive) return;
  it->second.state = MemberState::dead;
}

std::vector<MemberState> MemberRoll::states() const {
  std::lock_guard lock(mutex_);
  std::vector<MemberState> all;
  for (const auto& [process, entry] : entries_)
    all.push_back({process, entry.state, in_milliseconds(entry.silent), entry.status});
  return all;
}

std::map<int, uint64_t> MemberRoll::reports() const {
  std::lock_guard lock(mutex_);
  std::map<int, uint64_t> counts;
  for (const auto& [process, entry] : entries_) {
    if (entry.state == MemberState::alive && in_milliseconds(entry.silent) <= max_silence_ms)
      counts[process] = entry.reports;
  }
  return counts;
}

std::string encode_members(const std::vector<MemberState>& states) {
  std::string text;
  for (const MemberState& one : states) {
    key_value::add_number(text, static_cast<uint64_t>(one.process));
    key_value::add_number(text, one.state);
    key_value::add_number(text, static_cast<uint64_t>(one.silent_ms));
    key_value::add_text(text, one.status);
  }
  return text;
}

std::vector<MemberState> decode_members(const std::string& text) {
  std::vector<MemberState> states;
  for (std::size_t at = 0; at < text.size();) {
    MemberState one;
    one.process = static_cast<int>(take_number(text, at));
    one.state = static_cast<MemberState::State>(take_number(text, at));
    one.silent_ms = static_cast<int64_t>(take_number(text, at));
    const uint64_t claimed = take_number(text, at);
    const std::size_t size = std::min<std::size_t>(claimed, text.size() - at);
    one.status = text.substr(at, size);
    at += size;
    states.push_back(std::move(one));
  }
  return states;
}

std::unique_ptr<Heartbeat> Heartbeat::connect(const std::string& address, const JobMember& member,
                                              int timeout_seconds) {
  key_value::AddressList found;
  key_value::look_up(address, found);
  for (const addrinfo* one = found.first; one; one = one->ai_next) {
    auto socket = std::make_unique<key_value::Socket>(
        ::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol));
    if (socket->descriptor() < 0 || ::connect(socket->descriptor(), one->ai_addr, one->ai_addrlen) != 0) continue;
    socket->set_timeout(timeout_seconds);
    if (key_value::greet_as_client(*socket, member)) return std::make_unique<TcpHeartbeat>(std::move(socket));
  }
  throw RuntimeError(concat("UNAVAILABLE: no key-value store of this job answers at ", address));
}

}  // namespace capibara
