// A server on loopback: a module with civetweb, opened when the first monitor serves.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace capibara {

struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8", body;
};
// A request: `token` and `host` are the headers X-Capibara-Token and Host.
struct HttpCall {
  std::string method, path, token, host;
};
using HttpHandler = std::function<HttpAnswer(const HttpCall& call)>;

// Serves until it is destroyed; the handler is called from threads of the server.
class HttpServer {
 public:
  // Raises RuntimeError where the module cannot be opened or the port is taken.
  HttpServer(const std::string& address, int port, HttpHandler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  int port() const { return port_; }

 private:
  HttpHandler handler_;
  void* server_ = nullptr;
  int port_ = 0;
};

// What the module offers; plain types, since it may be of another compiler.
struct HttpModule {
  using Write = void (*)(void* answer, int status, const char* type, const char* body, std::size_t size);
  struct Call {
    const char *method, *path, *token, *host;
  };
  using Handle = void (*)(void* context, const Call& call, void* answer, Write write);
  // Null and a reason where it cannot listen; `port` becomes the one it listens on.
  void* (*start)(const char* address, int* port, Handle handle, void* context, char* reason, std::size_t reason_size);
  void (*stop)(void* server);
};

}  // namespace capibara

extern "C" const capibara::HttpModule* capibara_http_module();
