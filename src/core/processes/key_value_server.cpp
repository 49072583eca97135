// The server of the key-value store: one thread for each connection, bounded in number, time and memory.
#include <arpa/inet.h>
#include <sys/socket.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include <capibara/error.h>

#include "core/processes/key_value_store.h"
#include "core/processes/key_value_wire.h"
#include "core/processes/members.h"

namespace capibara {

namespace {

using namespace key_value;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int request_seconds = 60;                               // the rest of a request after its first byte
constexpr int64_t max_wait_ms = int64_t{365} * 24 * 3600 * 1000;  // longer waits are as good as this one
constexpr milliseconds look_at_peer(500);
constexpr uint64_t entry_overhead = 128;  // approximate bytes per map entry

// One request, read whole.
struct Question {
  Request what;
  int64_t wait_ms;
  std::string key, value;
};

}  // namespace

struct KeyValueServer::State {
  struct Barrier {
    int count = 0;
    std::set<int> waiting;  // processes
    bool open = false;
  };
  struct Connection {
    explicit Connection(int descriptor) : socket(descriptor) {}
    Socket socket;
    std::thread thread;
    bool finished = false;
  };

  State(std::string own_secret, const KeyValueLimits& own_limits) : secret(std::move(own_secret)), limits(own_limits) {}

  const std::string secret;
  const KeyValueLimits limits;
  std::optional<Socket> listener;
  int port = 0;
  std::thread accepting;
  std::atomic<uint64_t> bytes{0};  // of entries and of requests being read
  std::atomic<int> strangers{0};
  MemberRoll roll;

  mutable std::mutex mutex;  // of all below
  std::condition_variable changed;
  std::map<std::string, std::string> values;
  std::map<std::string, std::shared_ptr<Barrier>> barriers;
  std::list<Connection> connections;
  bool ending = false;

  // Nothing that a peer does ends this thread: where descriptors, memory or threads are short, it waits until some are
  // free.
  void accept_all() {
    for (;;) {
      Descriptor accepted(::accept4(listener->descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
      const int error = errno;
      std::unique_lock lock(mutex);
      if (ending) return;
      join_finished();
      if (!accepted) {
        if (error != EINTR && error != ECONNABORTED) changed.wait_for(lock, milliseconds(50), [&] { return ending; });
        continue;
      }
      if (static_cast<int>(connections.size()) >= limits.max_connections || strangers >= limits.max_strangers) continue;
      try {
        Connection& connection = connections.emplace_back(std::move(accepted).release());
        ++strangers;
        try {
          connection.thread = std::thread([this, &connection] { serve(connection); });
        } catch (...) {
          --strangers;
          connections.pop_back();
          throw;
        }
      } catch (const std::exception&) {
        changed.wait_for(lock, milliseconds(50), [&] { return ending; });
      }
    }
  }

  // Joins the threads of finished connections.
  void join_finished() {
    for (auto it = connections.begin(); it != connections.end();) {
      if (!it->finished) {
        ++it;
        continue;
      }
      it->thread.join();
      it = connections.erase(it);
    }
  }

  void serve(Connection& connection) {
    bool stranger = true;
    try {
      connection.socket.set_timeout(limits.stranger_seconds);
      const std::optional<int> process = greet_as_server(connection.socket, secret);
      --strangers;
      stranger = false;
      connection.socket.set_timeout(request_seconds);
      bool reports = false;
      while (process && answer_next(connection.socket, *process, reports)) {
      }
      if (process && reports && !is_ending()) roll.lose(*process);
    } catch (const std::exception&) {  // no memory: this peer is dropped, the others stay
    }
    if (stranger) --strangers;
    std::lock_guard lock(mutex);
    connection.socket.close();
    connection.finished = true;
  }

  bool take(uint64_t size) {
    if (bytes.fetch_add(size) + size <= limits.max_bytes) return true;
    bytes -= size;
    return false;
  }

  bool is_ending() {
    std::lock_guard lock(mutex);
    return ending;
  }

  bool answer_next(const Socket& socket, int process, bool& reports) {
    char what = 0;
    if (!socket.wait_for_input() || !socket.read(&what, 1)) return false;
    // Bytes read for a request count as taken until it is answered.
    struct Taken {
      State& state;
      uint64_t size = 0;
      ~Taken() { state.bytes -= size; }
    } taken{*this};
    auto may_take = [&](uint64_t size) {
      if (!take(size)) return false;
      taken.size += size;
      return true;
    };
    const std::optional<uint64_t> number = socket.read_number();
    std::optional<std::string> key = number ? socket.read_text(max_key, may_take) : std::nullopt;
    std::optional<std::string> value = key ? socket.read_text(limits.max_value, may_take) : std::nullopt;
    if (!value) return false;
    const auto wait_ms = static_cast<int64_t>(*number);
    const Question question{static_cast<Request>(what), wait_ms < 0 ? 0 : std::min(wait_ms, max_wait_ms),
                            std::move(*key), std::move(*value)};
    std::string text;
    reports |= question.what == Request::beat;
    const Answer status = answer(question, process, socket, text);
    std::string reply(1, static_cast<char>(status));
    add_text(reply, text);
    return socket.write(reply);
  }

  // True if the condition holds before the timeout, a disconnect of the peer, or the end of the server.
  template <class Condition>
  bool wait(std::unique_lock<std::mutex>& lock, int64_t wait_ms, const Socket& socket, const Condition& condition) {
    const Clock::time_point end = Clock::now() + milliseconds(wait_ms);
    for (;;) {
      changed.wait_until(lock, std::min(end, Clock::now() + look_at_peer), [&] { return ending || condition(); });
      if (condition()) return true;
      if (ending || Clock::now() >= end || socket.peer_is_gone()) return false;
    }
  }

  Answer hear(const Question& question, int process, std::string& text) {
    if (question.what == Request::leave)
      roll.leave(process, question.value);
    else
      roll.report(process, question.value);
    text = encode_members(roll.states());
    return Answer::well;
  }

  Answer answer(const Question& question, int process, const Socket& socket, std::string& text) {
    if (question.what == Request::beat || question.what == Request::leave) return hear(question, process, text);
    std::unique_lock lock(mutex);
    switch (question.what) {
      case Request::get:
        if (wait(lock, question.wait_ms, socket, [&] { return values.count(question.key) != 0; })) {
          text = values.at(question.key);
          return Answer::well;
        }
        text = concat("DEADLINE_EXCEEDED: key '", question.key, "' was not written within ", question.wait_ms, " ms");
        return Answer::failed;
      case Request::try_get: {
        const auto it = values.find(question.key);
        if (it == values.end()) return Answer::absent;
        text = it->second;
        return Answer::well;
      }
      case Request::put:
      case Request::replace:
        return write(question, text);
      case Request::barrier:
        return meet(lock, question, process, socket, text);
      case Request::beat:
      case Request::leave:
        break;
    }
    text = concat("INVALID_ARGUMENT: the key-value store has no request number ", static_cast<int>(question.what));
    return Answer::failed;
  }

  Answer write(const Question& question, std::string& text) {
    const auto it = values.find(question.key);
    if (question.what == Request::put && it != values.end()) {
      text = concat("ALREADY_EXISTS: key '", question.key, "' has a value");
      return Answer::failed;
    }
    auto size_of = [&](const std::string& value) { return question.key.size() + value.size() + entry_overhead; };
    if (!take(size_of(question.value))) {
      text = concat("RESOURCE_EXHAUSTED: the key-value store holds at most ", limits.max_bytes, " bytes, key '",
                    question.key, "' has ", question.value.size(), " more");
      return Answer::failed;
    }
    if (it != values.end()) {
      bytes -= size_of(it->second);
      it->second = question.value;
    } else {
      values.emplace(question.key, question.value);
    }
    changed.notify_all();
    return Answer::well;
  }

  Answer meet(std::unique_lock<std::mutex>& lock, const Question& question, int process, const Socket& socket,
              std::string& text) {
    int count = 0;
    const char* end = question.value.data() + question.value.size();
    const auto [read_to, error] = std::from_chars(question.value.data(), end, count);
    if (error != std::errc() || read_to != end || count < 1) {
      text = concat("INVALID_ARGUMENT: barrier '", question.key, "' needs a positive number of processes");
      return Answer::failed;
    }
    std::shared_ptr<Barrier>& slot = barriers[question.key];
    if (!slot) slot = std::make_shared<Barrier>(Barrier{count, {}, false});
    const std::shared_ptr<Barrier> barrier = slot;
    if (barrier->count != count) {
      text = concat("INVALID_ARGUMENT: barrier '", question.key, "' is for ", barrier->count, " processes, process ",
                    process, " expects ", count);
      return Answer::failed;
    }
    if (!barrier->waiting.insert(process).second) {
      text = concat("INVALID_ARGUMENT: process ", process, " waits at barrier '", question.key, "' already");
      return Answer::failed;
    }
    if (static_cast<int>(barrier->waiting.size()) == count) {
      barrier->open = true;
      barriers.erase(question.key);  // later arrivals start a new one
      changed.notify_all();
      return Answer::well;
    }
    if (wait(lock, question.wait_ms, socket, [&] { return barrier->open; })) return Answer::well;
    text = concat("DEADLINE_EXCEEDED: barrier '", question.key, "' was reached by ", barrier->waiting.size(), " of ",
                  count, " processes within ", question.wait_ms, " ms");
    barrier->waiting.erase(process);
    if (barrier->waiting.empty()) barriers.erase(question.key);
    return Answer::failed;
  }
};

KeyValueServer::KeyValueServer(const std::string& address, const std::string& secret, const KeyValueLimits& limits)
    : state_(std::make_shared<State>(secret, limits)) {
  if (secret.empty()) throw ValueError("key-value store: the secret of the job must not be empty");
  AddressList found;
  look_up(address, found);
  int error = 0;
  for (const addrinfo* one = found.first; one && !state_->listener; one = one->ai_next) {
    Descriptor socket(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol));
    const int on = 1;
    setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (!socket || ::bind(socket.number(), one->ai_addr, one->ai_addrlen) != 0 || ::listen(socket.number(), 128) != 0) {
      error = errno;
      continue;
    }
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    getsockname(socket.number(), reinterpret_cast<sockaddr*>(&own), &size);
    state_->port = ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(own).sin6_port
                                                   : reinterpret_cast<sockaddr_in&>(own).sin_port);
    state_->listener.emplace(std::move(socket).release());
  }
  if (!state_->listener) {
    throw RuntimeError(concat("key-value store: cannot listen at ", address, ": ", std::strerror(error),
                              "\nHint: coordinator_bind_address names the address where process 0 listens"));
  }
  state_->accepting = std::thread([state = state_.get()] { state->accept_all(); });
}

KeyValueServer::~KeyValueServer() {
  {
    std::lock_guard lock(state_->mutex);
    state_->ending = true;
    state_->changed.notify_all();
  }
  state_->listener->shut();
  state_->accepting.join();
  {
    std::lock_guard lock(state_->mutex);
    for (auto& connection : state_->connections) connection.socket.shut();
  }
  for (auto& connection : state_->connections) connection.thread.join();
}

int KeyValueServer::port() const { return state_->port; }

std::map<int, uint64_t> KeyValueServer::reports() const { return state_->roll.reports(); }

int KeyValueServer::connections() const {
  std::lock_guard lock(state_->mutex);
  int open = 0;
  for (const auto& connection : state_->connections) open += !connection.finished;
  return open;
}

}  // namespace capibara
