// capibara top: shows the metrics of a monitored process in the terminal.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <capibara/error.h>

#include "command.h"
#include "core/runtime/private_folder.h"
#include "io/files/json.h"
#include "operate/monitor/capture.h"

namespace capibara::command {

namespace {

// Sends one request on loopback and returns the response body; raises RuntimeError without a response in time.
std::string request(int port, const std::string& line, const std::string& headers, int seconds) {
  const Descriptor connection(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval limit{seconds, 0};
  ::setsockopt(connection.number(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(connection.number(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(connection.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw RuntimeError(concat("top: nothing listens on 127.0.0.1:", port, " (", std::strerror(errno),
                              "); start the program with CAPIBARA_MONITOR=", port, ", or a Monitor in it"));
  }
  std::string answer;
  char block[4096];
  if (write_whole(connection.number(), concat(line, " HTTP/1.1\r\nHost: 127.0.0.1\r\n", headers, "\r\n"))) {
    for (ssize_t got = 0; answer.size() < (1 << 20) && (got = ::recv(connection.number(), block, sizeof block, 0)) > 0;)
      answer.append(block, static_cast<std::size_t>(got));
  }
  const std::size_t body = answer.find("\r\n\r\n");
  if (!answer.starts_with("HTTP/1.1 ") || body == std::string::npos)
    throw RuntimeError(concat("top: 127.0.0.1:", port, " is not a monitor of capibara"));
  if (!answer.starts_with("HTTP/1.1 200")) {
    throw RuntimeError(concat("top: 127.0.0.1:", port, " answers ", answer.substr(9, answer.find('\r') - 9), ": ",
                              answer.substr(body + 4)));
  }
  return answer.substr(body + 4);
}

std::string fetch_metrics(int port) { return request(port, "GET /metrics.json", "", 2); }

// The token that a monitor of this user has stored in a file.
std::string token_of(int port) {
  const std::optional<std::string> token = find_capture_token(port);
  if (!token) {
    throw RuntimeError(concat("top: no monitor of this user on port ", port, " has left its token in ",
                              user_cache_folder(),
                              "/jobs; the user who started it reads it, and its program has Monitor::link"));
  }
  return *token;
}

std::string number_text(const Json& value) {
  const std::string text = value.dump();
  if (value.integer() || text == "null") return text == "null" ? "nan" : text;
  const double number = std::stod(text);
  char shown[32];
  std::snprintf(shown, sizeof shown,
                std::fabs(number - std::round(number)) < 1e-12 && std::fabs(number) < 1e15 ? "%.0f" : "%.4g", number);
  return shown;
}

void print_metrics(const std::string& text) {
  const Json json = Json::parse(text, "top");
  const Json* metrics = json.find("metrics");
  const Json* alerts = json.find("alerts");
  if (!metrics || !metrics->list() || !alerts || !alerts->list()) throw RuntimeError("top: an answer without metrics");
  for (const Json& row : *metrics->list()) {
    const Json* name = row.find("name");
    const Json* doc = row.find("doc");
    const Json* value = row.find("value");
    if (!name || !name->text() || !doc || !doc->text() || !value) continue;
    std::printf("%-20s %14s   %s\n", name->text()->c_str(), number_text(*value).c_str(), doc->text()->c_str());
  }
  for (const Json& alert : *alerts->list()) std::printf("ALERT %s\n", alert.text() ? alert.text()->c_str() : "");
}

}  // namespace

int top(const Arguments& arguments) {
  if (arguments.words.size() > 1) throw UsageError{"expected at most one port"};
  if (!arguments.words.empty() && arguments.words[0].find_first_not_of("0123456789") != std::string::npos) {
    throw UsageError{concat("the port must be a number, got '", arguments.words[0], "'")};
  }
  Arguments port = arguments;
  port.options["port"] = arguments.words.empty() ? "9090" : arguments.words[0];
  const int number = port.integer("port", 9090);
  if (arguments.has("link")) {
    std::printf("http://127.0.0.1:%d/#%s\n", number, token_of(number).c_str());
    return 0;
  }
  if (arguments.has("capture")) {
    const Json answer = Json::parse(
        request(number, "POST /capture", concat("X-Capibara-Token: ", token_of(number), "\r\n"), 120), "top");
    const Json* profile = answer.find("profile");
    if (!profile || !profile->text()) throw RuntimeError("top: an answer without a profile");
    std::printf("%s\n", profile->text()->c_str());
    return 0;
  }
  if (arguments.has("once")) {
    print_metrics(fetch_metrics(number));
    return 0;
  }
  while (true) {
    const std::string text = fetch_metrics(number);
    std::printf("\033[H\033[2Jcapibara top, 127.0.0.1:%d\n\n", number);
    print_metrics(text);
    std::fflush(stdout);
    ::sleep(1);
  }
}

}  // namespace capibara::command
