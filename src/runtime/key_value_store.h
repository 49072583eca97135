// A key-value store that the processes of one program share: one of them serves it over TCP, all are its clients.
//
// Keys are written once. A reader may wait for a key; a barrier lets everybody go on when everybody has come.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace capibara {

class KeyValueStore {
 public:
  // Connects to HOST:PORT, trying until the time is over. Raises RuntimeError.
  static std::shared_ptr<KeyValueStore> connect(const std::string& address, int timeout_seconds);
  virtual ~KeyValueStore() = default;

  // Waits for the key. Raises RuntimeError "DEADLINE_EXCEEDED: ..." where it does not come in time.
  virtual std::string get(const std::string& key, int64_t timeout_ms) = 0;
  virtual std::optional<std::string> try_get(const std::string& key) = 0;
  // Raises RuntimeError "ALREADY_EXISTS: ..." where the key has a value, unless it may be replaced.
  virtual void put(const std::string& key, const std::string& value, bool replace = false) = 0;
  // Waits until `count` processes have called it with this name.
  virtual void barrier(const std::string& name, int count, int64_t timeout_ms) = 0;
};

// The serving side. Listens until it is destroyed.
class KeyValueServer {
 public:
  explicit KeyValueServer(const std::string& address);  // HOST:PORT to listen at; port 0: a free one
  ~KeyValueServer();
  KeyValueServer(const KeyValueServer&) = delete;

  int port() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// This process as one of several: what jax.distributed.initialize sets up.
struct ProcessGroup {
  int process_id = 0, process_count = 1;
  std::shared_ptr<KeyValueStore> store;  // null: one process
};
namespace distributed {
// Process 0 serves the store. Returns when all have come. Raises RuntimeError where it was called before.
void initialize(const std::string& coordinator_address, int process_count, int process_id, int timeout_seconds = 300);
void shutdown();  // waits for the others; does nothing where there is only one process
bool is_initialized();
ProcessGroup group();
}  // namespace distributed

}  // namespace capibara
