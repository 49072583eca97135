// A libFuzzer target: whatever a peer sends, the key-value server survives, stays within limits and serves others.
#include <arpa/inet.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include <capibara/error.h>

#include "core/processes/key_value_store.h"
#include "core/processes/key_value_wire.h"

namespace {

using capibara::key_value::Socket;

const capibara::JobMember member{"the secret of the fuzzer", 1};

// Empty if this process was interrupted or has no port left; a server that does not answer is a bug.
std::optional<Socket> connect_to(int port) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.descriptor(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    if (errno == EINTR || errno == EADDRNOTAVAIL) return std::nullopt;
    std::perror("connect");
    std::abort();
  }
  socket.set_timeout(5);
  return socket;
}

}  // namespace

// The first byte decides whether the peer authenticates first.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const capibara::KeyValueServer server(
      "127.0.0.1:0", member.secret,
      {.max_connections = 64, .max_strangers = 16, .stranger_seconds = 1, .max_bytes = 1 << 22, .max_value = 1 << 20});
  static const auto store =
      capibara::KeyValueStore::connect("127.0.0.1:" + std::to_string(server.port()), 5, {member.secret, 0});
  if (size == 0) return 0;
  {
    const std::optional<Socket> peer = connect_to(server.port());
    if (!peer) return 0;
    if (data[0] % 4 != 0 && !capibara::key_value::greet_as_client(*peer, member)) return 0;  // full at the moment
    peer->write({reinterpret_cast<const char*>(data + 1), size - 1});
    ::shutdown(peer->descriptor(), SHUT_WR);
    char answer[256];
    while (::recv(peer->descriptor(), answer, sizeof answer, 0) > 0) {
    }
  }
  try {
    store->put("mine", "value", true);
    if (store->get("mine", 1000) != "value") std::abort();
  } catch (const capibara::RuntimeError& error) {
    if (std::string(error.what()).find("RESOURCE_EXHAUSTED") == std::string::npos) std::abort();
  }
  return 0;
}
