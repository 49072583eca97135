// The store over TCP: one thread for each connection, one request at a time on each.
//
// A request is a byte that says what is asked, a number (milliseconds, or a count), a key and a value, each with its size
// before it; the answer is a byte (0: well) and a text. All numbers are 64 bits, little end first.
#include "runtime/key_value_store.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include <capibara/error.h>

namespace capibara {

namespace {

using Clock = std::chrono::steady_clock;

enum class Request : char { get = 'g', try_get = 't', put = 'p', replace = 'r', barrier = 'b' };
enum class Answer : char { well = 0, absent = 1, failed = 2 };

constexpr uint64_t largest_text = uint64_t{1} << 30;

class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Socket(const Socket&) = delete;

  int descriptor() const { return descriptor_; }
  void shut() const { ::shutdown(descriptor_, SHUT_RDWR); }

  bool read(void* to, std::size_t size) const {
    auto* place = static_cast<char*>(to);
    while (size > 0) {
      const ssize_t got = ::recv(descriptor_, place, size, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      place += got;
      size -= static_cast<std::size_t>(got);
    }
    return true;
  }
  bool write(const std::string& text) const {
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t sent = ::send(descriptor_, text.data() + done, text.size() - done, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return false;
      done += static_cast<std::size_t>(sent);
    }
    return true;
  }
  std::optional<uint64_t> read_number() const {
    unsigned char bytes[8];
    if (!read(bytes, sizeof bytes)) return std::nullopt;
    uint64_t number = 0;
    for (int i = 0; i < 8; ++i) number |= static_cast<uint64_t>(bytes[i]) << (8 * i);
    return number;
  }
  std::optional<std::string> read_text() const {
    const std::optional<uint64_t> size = read_number();
    if (!size || *size > largest_text) return std::nullopt;
    std::string text(*size, '\0');
    if (!read(text.data(), text.size())) return std::nullopt;
    return text;
  }

 private:
  int descriptor_;
};

void add_number(std::string& out, uint64_t number) {
  for (int i = 0; i < 8; ++i) out += static_cast<char>(number >> (8 * i) & 0xff);
}
void add_text(std::string& out, const std::string& text) {
  add_number(out, text.size());
  out += text;
}

struct Address {
  std::string host, port;
};
Address split_address(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon + 1 == address.size()) {
    throw ValueError(concat("coordinator address: expected HOST:PORT, got '", address, "'"));
  }
  std::string host = address.substr(0, colon);
  if (host.size() > 1 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return {host, address.substr(colon + 1)};
}

struct AddressList {
  addrinfo* first = nullptr;
  ~AddressList() {
    if (first) freeaddrinfo(first);
  }
};
void look_up(const Address& address, bool passive, AddressList& found) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = passive ? AI_PASSIVE : 0;
  const int status = getaddrinfo(address.host.empty() ? nullptr : address.host.c_str(), address.port.c_str(), &hints, &found.first);
  if (status != 0) throw RuntimeError(concat("coordinator address '", address.host, ":", address.port, "': ", gai_strerror(status)));
}

// ---- the client ---------------------------------------------------------------------------------------------------

class TcpStore final : public KeyValueStore {
 public:
  explicit TcpStore(std::string address) : address_(std::move(address)) {}

  std::string get(const std::string& key, int64_t timeout_ms) override { return ask(Request::get, static_cast<uint64_t>(timeout_ms), key, ""); }
  std::optional<std::string> try_get(const std::string& key) override {
    bool absent = false;
    std::string value = ask(Request::try_get, 0, key, "", &absent);
    return absent ? std::nullopt : std::optional(std::move(value));
  }
  void put(const std::string& key, const std::string& value, bool replace) override {
    ask(replace ? Request::replace : Request::put, 0, key, value);
  }
  void barrier(const std::string& name, int count, int64_t timeout_ms) override {
    ask(Request::barrier, static_cast<uint64_t>(timeout_ms), name, std::to_string(count));
  }

  // A connection of its own for each request under way: one that waits holds up nobody.
  std::unique_ptr<Socket> open() const {
    AddressList found;
    look_up(split_address(address_), false, found);
    for (const addrinfo* one = found.first; one; one = one->ai_next) {
      auto socket = std::make_unique<Socket>(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol));
      if (socket->descriptor() < 0 || ::connect(socket->descriptor(), one->ai_addr, one->ai_addrlen) != 0) continue;
      const int on = 1;
      setsockopt(socket->descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      return socket;
    }
    return nullptr;
  }
  void keep(std::unique_ptr<Socket> socket) {
    std::lock_guard lock(mutex_);
    idle_.push_back(std::move(socket));
  }

 private:
  std::string ask(Request what, uint64_t number, const std::string& key, const std::string& value, bool* absent = nullptr) {
    std::unique_ptr<Socket> socket;
    {
      std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        socket = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    if (!socket) socket = open();
    if (!socket) throw RuntimeError(concat("UNAVAILABLE: no key-value store answers at ", address_));
    std::string request(1, static_cast<char>(what));
    add_number(request, number);
    add_text(request, key);
    add_text(request, value);
    char status = 0;
    std::optional<std::string> text;
    if (socket->write(request) && socket->read(&status, 1)) text = socket->read_text();
    if (!text) throw RuntimeError(concat("UNAVAILABLE: the key-value store at ", address_, " closed the connection (key '", key, "')"));
    keep(std::move(socket));
    if (static_cast<Answer>(status) == Answer::failed) throw RuntimeError(*text);
    if (absent) *absent = static_cast<Answer>(status) == Answer::absent;
    return *text;
  }

  const std::string address_;
  std::mutex mutex_;
  std::list<std::unique_ptr<Socket>> idle_;
};

}  // namespace

std::shared_ptr<KeyValueStore> KeyValueStore::connect(const std::string& address, int timeout_seconds) {
  auto store = std::make_shared<TcpStore>(address);
  const Clock::time_point end = Clock::now() + std::chrono::seconds(timeout_seconds);
  for (;;) {
    if (std::unique_ptr<Socket> socket = store->open()) {
      store->keep(std::move(socket));
      return store;
    }
    if (Clock::now() >= end) {
      throw RuntimeError(concat("DEADLINE_EXCEEDED: no key-value store answered at ", address, " within ", timeout_seconds, " s"));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

// ---- the server ---------------------------------------------------------------------------------------------------

struct KeyValueServer::State {
  std::unique_ptr<Socket> listener;
  int port = 0;
  std::thread accepting;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string> values;
  struct Barrier {
    int waiting = 0;
    int64_t round = 0;
  };
  std::map<std::string, Barrier> barriers;
  std::list<std::pair<std::shared_ptr<Socket>, std::thread>> connections;
  bool ending = false;

  void accept_all() {
    for (;;) {
      const int descriptor = ::accept4(listener->descriptor(), nullptr, nullptr, SOCK_CLOEXEC);
      if (descriptor < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
      std::lock_guard lock(mutex);
      if (descriptor < 0 || ending) {
        if (descriptor >= 0) ::close(descriptor);
        return;
      }
      const int on = 1;
      setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      auto socket = std::make_shared<Socket>(descriptor);
      connections.emplace_back(socket, std::thread([this, socket] { serve(*socket); }));
    }
  }

  void serve(const Socket& socket) {
    char what = 0;
    while (socket.read(&what, 1)) {
      const std::optional<uint64_t> number = socket.read_number();
      const std::optional<std::string> key = number ? socket.read_text() : std::nullopt;
      const std::optional<std::string> value = key ? socket.read_text() : std::nullopt;
      if (!value) return;
      std::string text;
      const Answer status = answer(static_cast<Request>(what), static_cast<int64_t>(*number), *key, *value, text);
      std::string reply(1, static_cast<char>(status));
      add_text(reply, text);
      if (!socket.write(reply)) return;
    }
  }

  Answer answer(Request what, int64_t number, const std::string& key, const std::string& value, std::string& text) {
    std::unique_lock lock(mutex);
    const Clock::time_point end = Clock::now() + std::chrono::milliseconds(number);
    switch (what) {
      case Request::get: {
        const bool came = changed.wait_until(lock, end, [&] { return ending || values.count(key) != 0; });
        if (came && !ending) {
          text = values.at(key);
          return Answer::well;
        }
        text = concat("DEADLINE_EXCEEDED: key '", key, "' was not written within ", number, " ms");
        return Answer::failed;
      }
      case Request::try_get: {
        const auto place = values.find(key);
        if (place == values.end()) return Answer::absent;
        text = place->second;
        return Answer::well;
      }
      case Request::put:
      case Request::replace:
        if (what == Request::put && values.count(key) != 0) {
          text = concat("ALREADY_EXISTS: key '", key, "' has a value");
          return Answer::failed;
        }
        values[key] = value;
        changed.notify_all();
        return Answer::well;
      case Request::barrier: {
        Barrier& barrier = barriers[key];
        const int count = std::atoi(value.c_str());
        if (++barrier.waiting >= count) {
          barrier.waiting = 0;
          ++barrier.round;
          changed.notify_all();
          return Answer::well;
        }
        const int64_t round = barrier.round;
        if (changed.wait_until(lock, end, [&] { return ending || barrier.round != round; }) && barrier.round != round) return Answer::well;
        text = concat("DEADLINE_EXCEEDED: barrier '", key, "' was reached by ", barrier.waiting, " of ", count, " processes within ", number, " ms");
        --barrier.waiting;
        return Answer::failed;
      }
    }
    text = concat("INVALID_ARGUMENT: the key-value store knows no request '", static_cast<char>(what), "'");
    return Answer::failed;
  }
};

KeyValueServer::KeyValueServer(const std::string& address) : state_(std::make_shared<State>()) {
  AddressList found;
  look_up(split_address(address), true, found);
  int error = 0;
  for (const addrinfo* one = found.first; one && !state_->listener; one = one->ai_next) {
    auto socket = std::make_unique<Socket>(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol));
    const int on = 1;
    setsockopt(socket->descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (socket->descriptor() < 0 || ::bind(socket->descriptor(), one->ai_addr, one->ai_addrlen) != 0 || ::listen(socket->descriptor(), 128) != 0) {
      error = errno;
      continue;
    }
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    getsockname(socket->descriptor(), reinterpret_cast<sockaddr*>(&own), &size);
    state_->port = ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(own).sin6_port : reinterpret_cast<sockaddr_in&>(own).sin_port);
    state_->listener = std::move(socket);
  }
  if (!state_->listener) throw RuntimeError(concat("key-value store: cannot listen at ", address, ": ", std::strerror(error)));
  state_->accepting = std::thread([state = state_.get()] { state->accept_all(); });
}

KeyValueServer::~KeyValueServer() {
  {
    std::lock_guard lock(state_->mutex);
    state_->ending = true;
    state_->changed.notify_all();
    for (const auto& [socket, thread] : state_->connections) socket->shut();
  }
  state_->listener->shut();
  state_->accepting.join();
  for (auto& [socket, thread] : state_->connections) {
    socket->shut();
    thread.join();
  }
}

int KeyValueServer::port() const { return state_->port; }

// ---- the group of processes ---------------------------------------------------------------------------------------

namespace distributed {

namespace {

constexpr int64_t barrier_ms = 300000;

struct Current {
  std::mutex mutex;
  std::unique_ptr<KeyValueServer> server;
  ProcessGroup group;
};
Current& current() {
  static auto* instance = new Current;  // never freed: a plugin's client may ask until the very end
  return *instance;
}

}  // namespace

void initialize(const std::string& coordinator_address, int process_count, int process_id, int timeout_seconds) {
  if (process_count < 1) throw ValueError(concat("distributed.initialize: num_processes must be positive, got ", process_count));
  if (process_id < 0 || process_id >= process_count) {
    throw ValueError(concat("distributed.initialize: process_id must be at least 0 and below num_processes = ", process_count, ", got ", process_id));
  }
  Current& now = current();
  std::lock_guard lock(now.mutex);
  if (now.group.store) throw RuntimeError("distributed.initialize should only be called once.");
  std::unique_ptr<KeyValueServer> server;
  if (process_id == 0) server = std::make_unique<KeyValueServer>(coordinator_address);
  std::shared_ptr<KeyValueStore> store = KeyValueStore::connect(coordinator_address, timeout_seconds);
  store->barrier("capibara/start", process_count, int64_t{1000} * timeout_seconds);
  now.server = std::move(server);
  now.group = {process_id, process_count, std::move(store)};
}

void shutdown() {
  Current& now = current();
  std::lock_guard lock(now.mutex);
  if (!now.group.store) return;
  const ProcessGroup group = std::exchange(now.group, {});
  // Process 0 goes last: the others still need its answer.
  try {
    group.store->barrier("capibara/end", group.process_count, barrier_ms);
  } catch (const RuntimeError&) {
    if (group.process_id == 0) {
      now.server.reset();
      throw;
    }
  }
  now.server.reset();
}

bool is_initialized() { return group().store != nullptr; }

ProcessGroup group() {
  Current& now = current();
  std::lock_guard lock(now.mutex);
  return now.group;
}

}  // namespace distributed
}  // namespace capibara
