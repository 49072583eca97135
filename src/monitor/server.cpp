// Opens the module with the HTTP server.
#include "monitor/server.h"

#include <dlfcn.h>

#include <capibara/error.h>

namespace capibara {

namespace {

constexpr const char* http_module_file = "libcapibara_http.so";

const HttpModule& http_module() {
  static const HttpModule* const module = [] {
    void* handle = dlopen(http_module_file, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      const char* message = dlerror();
      throw RuntimeError(concat("monitor: serving needs the module ", http_module_file, ", which cannot be opened (",
                                message ? message : "unknown reason",
                                "); install libcivetweb-dev and build capibara again, or monitor without a port"));
    }
    const auto function = reinterpret_cast<decltype(&capibara_http_module)>(dlsym(handle, "capibara_http_module"));
    if (!function)
      throw RuntimeError(concat("monitor: ", http_module_file,
                                " was built without civetweb; install libcivetweb-dev and build capibara again"));
    return function();
  }();
  return *module;
}

}  // namespace

HttpServer::HttpServer(const std::string& address, int port, HttpHandler handler)
    : handler_(std::move(handler)), port_(port) {
  char reason[256] = "";
  server_ = http_module().start(
      address.c_str(), &port_,
      [](void* context, const HttpModule::Call& call, void* answer, HttpModule::Write write) {
        HttpAnswer result;
        try {
          result = static_cast<HttpServer*>(context)->handler_({call.method, call.path, call.token, call.host});
        } catch (const std::exception& error) {
          result = {500, "text/plain; charset=utf-8", error.what()};
        }
        write(answer, result.status, result.type.c_str(), result.body.data(), result.body.size());
      },
      this, reason, sizeof reason);
  if (!server_)
    throw RuntimeError(concat("monitor: cannot listen on ", address, ":", port, " (", reason,
                              "); choose another port, or 0 for a free one"));
}

HttpServer::~HttpServer() { http_module().stop(server_); }

}  // namespace capibara
