// A small HTTP server: one thread multiplexes all connections, so that no client can block another.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "operate/monitor/http_request.h"

namespace capibara {

class HttpReply;

struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8", body;
  // For slow answers: computes the answer in a separate thread, while others are served.
  std::function<HttpAnswer()> later = {};
  // For answers that other threads write, whole or piece by piece: instead of the fields above.
  std::shared_ptr<HttpReply> reply = {};
};
using HttpHandler = std::function<HttpAnswer(const HttpCall& call)>;

// An answer that is written after its handler has returned, by any thread. What is written for a client that has
// disconnected is dropped.
class HttpReply {
 public:
  struct State;

  HttpReply();
  void send(const HttpAnswer& answer);  // status, type and body; ends the answer
  void begin(const std::string& type);  // with status 200; pieces follow
  void write(std::string_view text);
  void end();
  bool begun() const;
  bool gone() const;  // the client has disconnected, or the server ended
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

struct HttpServerOptions {
  std::vector<std::string> hosts = {};  // names accepted besides the server's address
  std::size_t max_body_bytes = 0;       // 0: bodies are not read
  std::string what = "monitor";         // errors begin with it
  std::string hosts_hint = "'hosts' of the monitor or in CAPIBARA_MONITOR_HOSTS";  // where users name hosts
};

// Listens from construction, and serves until destroyed; the handler is called on the server's thread. Requests
// whose Host is not one of HostNames are answered with 403. A connection that has not sent its whole head after two
// seconds, or its body after ten, is closed; if there are more than max_connections, the oldest one that waits for
// its client is.
class HttpServer {
 public:
  static constexpr std::size_t max_connections = 128, max_head_bytes = 16 << 10;

  // Raises RuntimeError if it cannot listen.
  HttpServer(const std::string& address, int port, HttpServerOptions options = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  void start(HttpHandler handler);  // once
  // Stops accepting connections, and waits until the replies that have ended are sent, for this long at most.
  void drain(int milliseconds);
  int port() const;
  std::string address() const;  // numeric, of the listening socket

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace capibara
