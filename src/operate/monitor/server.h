// A small HTTP server: one thread multiplexes all connections, so that no client can block another.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "operate/monitor/http_request.h"

namespace capibara {

struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8", body;
  // For slow answers: computes the answer in a separate thread, while others are served.
  std::function<HttpAnswer()> later = {};
};
using HttpHandler = std::function<HttpAnswer(const HttpCall& call)>;

// Listens from construction, and serves until destroyed; the handler is called on the server's thread. Requests
// whose Host is not one of HostNames are answered with 403. A connection that has not sent its whole head after two
// seconds is closed, and the oldest one is closed if there are more than max_connections.
class HttpServer {
 public:
  static constexpr std::size_t max_connections = 128, max_head_bytes = 16 << 10;

  // `hosts` are names accepted besides the server's address. Raises RuntimeError if it cannot listen.
  HttpServer(const std::string& address, int port, std::vector<std::string> hosts);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  void start(HttpHandler handler);  // once
  int port() const;
  std::string address() const;  // numeric, of the listening socket

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace capibara
