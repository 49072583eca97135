// A small HTTP server: one thread that waits for all connections at once, so that no client can keep another one
// waiting.
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
  // Where the answer takes long: makes it, in a thread of its own, while others are served.
  std::function<HttpAnswer()> later = {};
};
using HttpHandler = std::function<HttpAnswer(const HttpCall& call)>;

// Listens from the start, and serves until it is destroyed; the handler is called by the server's thread. Requests
// whose Host is none of HostNames are answered with 403. A connection that has not sent its whole head after two
// seconds is closed, and the oldest one is closed where there are more than max_connections.
class HttpServer {
 public:
  static constexpr std::size_t max_connections = 128, max_head_bytes = 16 << 10;

  // `hosts` are names that the server answers to besides its address. Raises RuntimeError where it cannot listen.
  HttpServer(const std::string& address, int port, std::vector<std::string> hosts);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  void start(HttpHandler handler);  // once
  int port() const;
  std::string address() const;  // that it listens on, in digits

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace capibara
