// The client of the key-value store: one connection for each request in flight.
#include "core/processes/key_value_store.h"

#include <sys/socket.h>

#include <chrono>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include <capibara/error.h>

#include "core/processes/key_value_wire.h"

namespace capibara {

namespace {

using namespace key_value;
using Clock = std::chrono::steady_clock;

constexpr int greeting_seconds = 10;
constexpr uint64_t max_answer = uint64_t{1} << 30;  // bytes

class TcpStore final : public KeyValueStore {
 public:
  TcpStore(std::string address, JobMember member) : address_(std::move(address)), member_(std::move(member)) {}

  std::string get(const std::string& key, int64_t timeout_ms) override {
    return ask(Request::get, timeout_ms, key, "");
  }
  std::optional<std::string> try_get(const std::string& key) override {
    bool absent = false;
    std::string value = ask(Request::try_get, 0, key, "", &absent);
    return absent ? std::nullopt : std::optional(std::move(value));
  }
  void put(const std::string& key, const std::string& value, bool replace) override {
    ask(replace ? Request::replace : Request::put, 0, key, value);
  }
  void barrier(const std::string& name, int count, int64_t timeout_ms) override {
    ask(Request::barrier, timeout_ms, name, std::to_string(count));
  }

  // One connection for each request in flight, so that one that waits blocks no other. Null: no server answers;
  // `stranger` is set if one answers that does not know the secret.
  std::unique_ptr<Socket> open(bool& stranger) const {
    AddressList found;
    look_up(address_, found);
    for (const addrinfo* one = found.first; one; one = one->ai_next) {
      auto socket =
          std::make_unique<Socket>(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol));
      if (socket->descriptor() < 0 || ::connect(socket->descriptor(), one->ai_addr, one->ai_addrlen) != 0) continue;
      socket->set_timeout(greeting_seconds);
      if (!greet_as_client(*socket, member_)) {
        stranger = true;
        continue;
      }
      socket->set_timeout(0);
      return socket;
    }
    return nullptr;
  }
  void keep(std::unique_ptr<Socket> socket) {
    std::lock_guard lock(mutex_);
    idle_.push_back(std::move(socket));
  }

 private:
  std::string ask(Request what, int64_t number, const std::string& key, const std::string& value,
                  bool* absent = nullptr) {
    if (key.size() > max_key)
      throw ValueError(concat("key-value store: a key has at most ", max_key, " bytes, got ", key.size()));
    std::unique_ptr<Socket> socket;
    {
      std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        socket = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    bool stranger = false;
    if (!socket) socket = open(stranger);
    if (!socket) {
      throw RuntimeError(concat(
          "UNAVAILABLE: ",
          stranger ? "who answers is not the key-value store of this job, or is full" : "no key-value store answers",
          " at ", address_));
    }
    std::string request(1, static_cast<char>(what));
    add_number(request, static_cast<uint64_t>(number));
    add_text(request, key);
    add_text(request, value);
    char status = 0;
    std::optional<std::string> text;
    if (socket->write(request) && socket->read(&status, 1)) text = socket->read_text(max_answer);
    if (!text)
      throw RuntimeError(
          concat("UNAVAILABLE: the key-value store at ", address_, " closed the connection (key '", key, "')"));
    keep(std::move(socket));
    if (static_cast<Answer>(status) == Answer::failed) throw RuntimeError(*text);
    if (absent) *absent = static_cast<Answer>(status) == Answer::absent;
    return *text;
  }

  const std::string address_;
  const JobMember member_;
  std::mutex mutex_;
  std::list<std::unique_ptr<Socket>> idle_;
};

}  // namespace

std::shared_ptr<KeyValueStore> KeyValueStore::connect(const std::string& address, int timeout_seconds,
                                                      const JobMember& member) {
  auto store = std::make_shared<TcpStore>(address, member);
  const Clock::time_point end = Clock::now() + std::chrono::seconds(timeout_seconds);
  for (;;) {
    bool stranger = false;
    if (std::unique_ptr<Socket> socket = store->open(stranger)) {
      store->keep(std::move(socket));
      return store;
    }
    if (Clock::now() >= end) {
      throw RuntimeError(concat("DEADLINE_EXCEEDED: no key-value store ",
                                stranger ? "of this job (with this secret) " : "", "answered at ", address, " within ",
                                timeout_seconds, " s"));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace capibara
