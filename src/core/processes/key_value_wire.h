// The protocol between client and server of the key-value store: sockets, framing, and the proof of the job's secret.
//
// First the server sends 32 random bytes, the client 32 of its own, its process id and a proof; the server answers with
// its proof. A proof is the HMAC-SHA-256 of the speaker's role and all of this, under the secret. Then requests follow:
// a byte for the kind of request, a number (milliseconds), a key and a value, each preceded by its size; the answer is
// a byte and a text. All numbers are 64-bit little-endian.
#pragma once

#include <netdb.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/processes/key_value_store.h"
#include "core/runtime/private_folder.h"

namespace capibara::key_value {

enum class Request : char {
  get = 'g',
  try_get = 't',
  put = 'p',
  replace = 'r',
  barrier = 'b',
  beat = 'a',
  leave = 'l'
};
enum class Answer : char { well = 0, absent = 1, failed = 2 };

constexpr uint64_t max_key = 64 << 10;  // bytes

class Socket {
 public:
  explicit Socket(int descriptor);  // sends at once what is written

  int descriptor() const { return descriptor_.number(); }
  void shut() const;
  void close() { descriptor_ = Descriptor(); }
  // A read or write that takes longer than this fails.
  void set_timeout(int seconds) const;
  bool wait_for_input() const;  // without a limit; false: the peer is gone
  bool peer_is_gone() const;

  bool read(void* to, std::size_t size) const;
  bool write(const std::string& text) const;
  std::optional<uint64_t> read_number() const;
  // `may_take` is called before memory is taken; memory grows as bytes arrive, not by the announced size.
  std::optional<std::string> read_text(uint64_t max_size, const std::function<bool(uint64_t)>& may_take = {}) const;

 private:
  Descriptor descriptor_;
};

void add_number(std::string& out, uint64_t number);
void add_text(std::string& out, const std::string& text);

// Each proves the secret to the other. False, or no process id: the peer does not know it.
bool greet_as_client(const Socket& socket, const JobMember& member);
std::optional<int> greet_as_server(const Socket& socket, const std::string& secret);

struct AddressList {
  addrinfo* first = nullptr;
  AddressList() = default;
  ~AddressList() {
    if (first) freeaddrinfo(first);
  }
  AddressList(const AddressList&) = delete;
};
// Resolves HOST:PORT into the list; without a host, this machine alone. Raises ValueError and
// RuntimeError.
void look_up(const std::string& address, AddressList& found);

}  // namespace capibara::key_value
