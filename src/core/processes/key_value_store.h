// A key-value store that the processes of one job share: one of them serves it over TCP, all are its clients.
//
// Keys are written once. A reader may wait for a key; a barrier releases all processes once all have arrived. Server
// and clients prove to each other that they know the job's secret before any other exchange (the rest is not
// encrypted).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace capibara {

// Identifies a client: the server admits only those that know the secret, and counts processes at barriers.
struct JobMember {
  std::string secret;
  int process_id = 0;
};

class KeyValueStore {
 public:
  // Connects to HOST:PORT, retrying until the timeout. Raises RuntimeError.
  static std::shared_ptr<KeyValueStore> connect(const std::string& address, int timeout_seconds,
                                                const JobMember& member);
  virtual ~KeyValueStore() = default;

  // Waits for the key. Raises RuntimeError "DEADLINE_EXCEEDED: ..." on timeout.
  virtual std::string get(const std::string& key, int64_t timeout_ms) = 0;
  virtual std::optional<std::string> try_get(const std::string& key) = 0;
  // Raises RuntimeError "ALREADY_EXISTS: ..." if the key has a value and `replace` is false, and
  // "RESOURCE_EXHAUSTED: ..." if the server's memory is full.
  virtual void put(const std::string& key, const std::string& value, bool replace = false) = 0;
  // Waits until `count` different processes have called it with this name.
  virtual void barrier(const std::string& name, int count, int64_t timeout_ms) = 0;
};

struct KeyValueLimits {
  int max_connections = 4096;
  int max_strangers = 64;                    // connections that have not proven the secret yet
  int stranger_seconds = 10;                 // how long one may take to do so
  uint64_t max_bytes = uint64_t{1} << 30;    // of all keys and values, and of requests being read
  uint64_t max_value = uint64_t{256} << 20;  // bytes
};

// The serving side. Listens until it is destroyed.
class KeyValueServer {
 public:
  // HOST:PORT to listen at; port 0: a free one; without a host: this machine alone. The secret must not be empty.
  KeyValueServer(const std::string& address, const std::string& secret, const KeyValueLimits& limits = {});
  ~KeyValueServer();
  KeyValueServer(const KeyValueServer&) = delete;

  int port() const;
  int connections() const;                  // open ones
  std::map<int, uint64_t> reports() const;  // how often each living process has reported, see members.h

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// This process as one of several: what jax.distributed.initialize sets up.
struct ProcessGroup {
  int process_id = 0, process_count = 1;
  std::shared_ptr<KeyValueStore> store;  // null: one process
  std::string address;                   // of the store
  std::string secret;
};
namespace distributed {
struct InitializeOptions {
  int timeout_seconds = 300;
  std::string bind_address = "";  // where process 0 listens; empty: at the coordinator's address
};
// Process 0 serves the store. Returns when all have arrived. Raises RuntimeError if it was called before.
// The secret is CAPIBARA_JOB_SECRET, or the content of CAPIBARA_JOB_SECRET_FILE (mode 0600), or else a random one that
// process 0 leaves for this user's other processes in the user's cache folder.
void initialize(const std::string& coordinator_address, int process_count, int process_id,
                const InitializeOptions& options = {});
// The same for processes that met by other means: process 0 passes the server, all pass the group with its store.
void adopt(ProcessGroup group, std::unique_ptr<KeyValueServer> server);
// Forgets the group. Process 0 keeps serving for a few seconds, until the living processes have read everything on
// the roll.
void leave();
bool is_initialized();
ProcessGroup group();
}  // namespace distributed

}  // namespace capibara
