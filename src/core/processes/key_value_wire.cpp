// Sockets with timeouts, texts whose memory grows as bytes arrive, and the mutual proof of a secret.
#include "core/processes/key_value_wire.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include <capibara/error.h>

#include "core/runtime/digest.h"

namespace capibara::key_value {

namespace {

constexpr std::size_t nonce_bytes = 32;
constexpr std::size_t chunk_bytes = 64 << 10;

bool fill_randomly(std::string& bytes) {
  return ::getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
}

std::string proof(const std::string& secret, const std::string& who, const std::string& said) {
  const Digest made = keyed_digest(secret, "capibara key-value store 1 " + who + said);
  return {reinterpret_cast<const char*>(made.bytes.data()), made.bytes.size()};
}

// In time independent of where they differ.
bool equal(const std::string& a, const std::string& b) {
  unsigned difference = a.size() != b.size();
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace

Socket::Socket(int descriptor) : descriptor_(descriptor) {
  const int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

void Socket::shut() const { ::shutdown(descriptor(), SHUT_RDWR); }

void Socket::set_timeout(int seconds) const {
  const timeval time{seconds, 0};
  for (const int which : {SO_RCVTIMEO, SO_SNDTIMEO}) setsockopt(descriptor(), SOL_SOCKET, which, &time, sizeof time);
}

bool Socket::wait_for_input() const {
  pollfd waiting{descriptor(), POLLIN, 0};
  for (;;) {
    const int ready = ::poll(&waiting, 1, -1);
    if (ready < 0 && errno == EINTR) continue;
    return ready > 0 && (waiting.revents & POLLIN) != 0;
  }
}

bool Socket::peer_is_gone() const {
  pollfd state{descriptor(), POLLRDHUP, 0};
  return ::poll(&state, 1, 0) > 0 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0;
}

bool Socket::read(void* to, std::size_t size) const { return read_exactly(descriptor(), to, size); }

bool Socket::write(const std::string& text) const {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t sent = ::send(descriptor(), text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    done += static_cast<std::size_t>(sent);
  }
  return true;
}

std::optional<uint64_t> Socket::read_number() const {
  unsigned char bytes[8];
  if (!read(bytes, sizeof bytes)) return std::nullopt;
  uint64_t number = 0;
  for (int i = 0; i < 8; ++i) number |= static_cast<uint64_t>(bytes[i]) << (8 * i);
  return number;
}

std::optional<std::string> Socket::read_text(uint64_t max_size, const std::function<bool(uint64_t)>& may_take) const {
  const std::optional<uint64_t> size = read_number();
  if (!size || *size > max_size || (may_take && !may_take(*size))) return std::nullopt;
  std::string text;
  while (text.size() < *size) {
    const std::size_t before = text.size(), next = std::min<std::size_t>(chunk_bytes, *size - before);
    text.resize(before + next);
    if (!read(text.data() + before, next)) return std::nullopt;
  }
  return text;
}

void add_number(std::string& out, uint64_t number) {
  for (int i = 0; i < 8; ++i) out += static_cast<char>(number >> (8 * i) & 0xff);
}
void add_text(std::string& out, const std::string& text) {
  add_number(out, text.size());
  out += text;
}

bool greet_as_client(const Socket& socket, const JobMember& member) {
  std::string theirs(nonce_bytes, '\0'), own(nonce_bytes, '\0');
  if (!socket.read(theirs.data(), theirs.size()) || !fill_randomly(own)) return false;
  add_number(own, static_cast<uint64_t>(member.process_id));
  if (!socket.write(own + proof(member.secret, "client", theirs + own))) return false;
  std::string answer(sizeof(Digest::bytes), '\0');
  return socket.read(answer.data(), answer.size()) && equal(answer, proof(member.secret, "server", theirs + own));
}

std::optional<int> greet_as_server(const Socket& socket, const std::string& secret) {
  std::string own(nonce_bytes, '\0'), theirs(nonce_bytes + 8, '\0'), answer(sizeof(Digest::bytes), '\0');
  if (!fill_randomly(own) || !socket.write(own)) return std::nullopt;
  if (!socket.read(theirs.data(), theirs.size()) || !socket.read(answer.data(), answer.size())) return std::nullopt;
  if (!equal(answer, proof(secret, "client", own + theirs))) return std::nullopt;
  if (!socket.write(proof(secret, "server", own + theirs))) return std::nullopt;
  uint32_t process = 0;
  for (int i = 0; i < 4; ++i)
    process |= static_cast<uint32_t>(static_cast<unsigned char>(theirs[nonce_bytes + i])) << (8 * i);
  return static_cast<int>(process);
}

void look_up(const std::string& address, AddressList& found) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon + 1 == address.size()) {
    throw ValueError(concat("coordinator address: expected HOST:PORT, got '", address, "'"));
  }
  std::string host = address.substr(0, colon);
  if (host.size() > 1 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  const int status =
      getaddrinfo(host.empty() ? nullptr : host.c_str(), address.substr(colon + 1).c_str(), &hints, &found.first);
  if (status != 0) throw RuntimeError(concat("coordinator address '", address, "': ", gai_strerror(status)));
}

}  // namespace capibara::key_value
