// A GET request over a plain socket, which is all that the metadata server needs.
#include "tpu/metadata.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include <capibara/error.h>

namespace capibara::tpu {

namespace {

int connect_within(const std::string& host, int port, double seconds) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  if (inet_pton(AF_INET, host.c_str(), &to.sin_addr) != 1) return -1;
  const int handle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (handle < 0) return -1;
  if (connect(handle, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 && errno != EINPROGRESS)
    return close(handle), -1;
  pollfd wait{handle, POLLOUT, 0};
  int failed = 1;
  socklen_t size = sizeof failed;
  if (poll(&wait, 1, static_cast<int>(1000 * seconds)) != 1 ||
      getsockopt(handle, SOL_SOCKET, SO_ERROR, &failed, &size) != 0 || failed) {
    return close(handle), -1;
  }
  return handle;
}

}  // namespace

bool port_answers(int port) {
  const int handle = connect_within("127.0.0.1", port, 0.05);
  if (handle >= 0) close(handle);
  return handle >= 0;
}

std::string ask_metadata(const std::string& address, const std::string& attribute, double seconds) {
  const std::size_t colon = address.find(':');
  if (colon == std::string::npos) return "";
  const int handle = connect_within(address.substr(0, colon), std::atoi(address.c_str() + colon + 1), seconds);
  if (handle < 0) return "";
  const std::string request = concat("GET /computeMetadata/v1/instance/attributes/", attribute,
                                     " HTTP/1.0\r\nHost: metadata.google.internal\r\nMetadata-Flavor: Google\r\n\r\n");
  std::string answer;
  if (send(handle, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size())) {
    char part[2048];
    for (pollfd wait{handle, POLLIN, 0};
         answer.size() < 65536 && poll(&wait, 1, static_cast<int>(1000 * seconds)) == 1;) {
      const ssize_t got = recv(handle, part, sizeof part, 0);
      if (got <= 0) break;
      answer.append(part, static_cast<std::size_t>(got));
    }
  }
  close(handle);
  const std::size_t body = answer.find("\r\n\r\n");
  if (answer.compare(0, 5, "HTTP/") != 0 || answer.find(" 200 ") > 16 || body == std::string::npos) return "";
  std::string text = answer.substr(body + 4);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

}  // namespace capibara::tpu
