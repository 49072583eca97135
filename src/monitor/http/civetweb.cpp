// The module libcapibara_http.so: civetweb behind a plain interface.
#include <civetweb.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "monitor/server.h"

namespace {

using capibara::HttpModule;

struct Server {
  mg_context* context = nullptr;
  HttpModule::Handle handle = nullptr;
  void* user = nullptr;
  std::string problem;
};

void write_answer(void* answer, int status, const char* type, const char* body, std::size_t size) {
  auto* connection = static_cast<mg_connection*>(answer);
  mg_printf(connection,
            "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: "
            "no-store\r\nX-Content-Type-Options: nosniff\r\n"
            "Connection: close\r\n\r\n",
            status, mg_get_response_code_text(connection, status), type, size);
  mg_write(connection, body, size);
}

int handle_request(mg_connection* connection) {
  const mg_request_info* request = mg_get_request_info(connection);
  auto* server = static_cast<Server*>(request->user_data);
  auto header = [&](const char* name) {
    const char* value = mg_get_header(connection, name);
    return value ? value : "";
  };
  server->handle(server->user,
                 {request->request_method, request->local_uri ? request->local_uri : "/", header("X-Capibara-Token"),
                  header("Host")},
                 connection, write_answer);
  return 1;  // answered, whatever it was
}

void* start(const char* address, int* port, HttpModule::Handle handle, void* context, char* reason,
            std::size_t reason_size) {
  auto* server = new Server{nullptr, handle, context, ""};
  const std::string listening = std::string(address) + ":" + std::to_string(*port);
  const char* options[] = {"listening_ports",
                           listening.c_str(),
                           "num_threads",
                           "3",
                           "request_timeout_ms",
                           "5000",
                           "enable_directory_listing",
                           "no",
                           nullptr};
  mg_callbacks callbacks{};
  callbacks.begin_request = handle_request;
  // Called before mg_start returns: the context's user data is the server already.
  callbacks.log_message = [](const mg_connection* connection, const char* message) {
    const mg_context* whose = mg_get_context(connection);
    if (auto* mine = static_cast<Server*>(whose ? mg_get_user_data(whose) : nullptr)) mine->problem = message;
    return 1;
  };
  mg_init_library(0);
  server->context = mg_start(&callbacks, server, options);
  mg_server_port bound{};
  if (!server->context || mg_get_server_ports(server->context, 1, &bound) < 1) {
    std::snprintf(reason, reason_size, "%s",
                  server->problem.empty() ? "the port is in use, or not this user's" : server->problem.c_str());
    if (server->context) mg_stop(server->context);
    delete server;
    return nullptr;
  }
  *port = bound.port;
  return server;
}

void stop(void* given) {
  auto* server = static_cast<Server*>(given);
  mg_stop(server->context);
  delete server;
}

constexpr HttpModule module{start, stop};

}  // namespace

extern "C" const capibara::HttpModule* capibara_http_module() { return &module; }
