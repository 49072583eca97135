// Opens the libcurl module and sends requests through it.
#include "io/files/http_client.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include <capibara/error.h>

namespace capibara {

namespace {

constexpr const char* client_module_file = "libcapibara_http.so";
constexpr std::size_t max_body_bytes = std::size_t{64} << 20, max_headers = 256;

const HttpClientModule& client_module() {
  static const HttpClientModule* const module = [] {
    void* handle = dlopen(client_module_file, RTLD_NOW | RTLD_LOCAL);
    const char* message = handle ? nullptr : dlerror();
    const auto function =
        handle ? reinterpret_cast<decltype(&capibara_http_client)>(dlsym(handle, "capibara_http_client")) : nullptr;
    if (!function) {
      throw RuntimeError(concat("object stores need libcurl in the module ", client_module_file, ", which ",
                                handle ? "was built without it" : "cannot be opened",
                                message ? concat(" (", message, ")") : "",
                                "; install libcurl4-openssl-dev and build capibara again, or name a folder"));
    }
    return function();
  }();
  return *module;
}

// The reply so far of a request in flight.
struct Arriving {
  const HttpRequest& request;
  HttpReply reply;
  bool too_large = false;

  void header(std::string_view line) {
    while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
    if (line.starts_with("HTTP/")) reply.headers.clear();  // of an interim answer, such as 100
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || reply.headers.size() >= max_headers) return;
    std::string name(line.substr(0, colon));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    line.remove_prefix(colon + 1);
    while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    reply.headers[name] = line;
  }

  bool body(int status, std::string_view bytes) {
    if (!request.into.empty() && (status == 200 || status == 206)) {
      if (bytes.size() > request.into.size() - reply.received) return too_large = true, false;
      std::memcpy(request.into.data() + reply.received, bytes.data(), bytes.size());
      reply.received += bytes.size();
      return true;
    }
    if (bytes.size() > max_body_bytes - reply.body.size()) return too_large = true, false;
    reply.body += bytes;
    return true;
  }
};

}  // namespace

HttpReply send_request(const HttpRequest& request) {
  std::vector<const char*> headers;
  for (const std::string& header : request.headers) {
    if (header.find_first_of("\r\n") != std::string::npos) throw ValueError("http: a header has more than one line");
    headers.push_back(header.c_str());
  }
  headers.push_back(nullptr);
  Arriving arriving{request, {}};
  HttpClientModule::Exchange exchange{};
  exchange.method = request.method.c_str();
  exchange.url = request.url.c_str();
  exchange.headers = headers.data();
  exchange.body = request.body.data();
  exchange.body_pieces = request.body.size();
  exchange.timeout_seconds = request.timeout_seconds;
  exchange.silence_seconds = request.silence_seconds;
  exchange.context = &arriving;
  exchange.on_header = [](void* context, const char* line, std::size_t size) {
    static_cast<Arriving*>(context)->header({line, size});
  };
  exchange.on_body = [](void* context, int status, const char* bytes, std::size_t size) {
    return static_cast<Arriving*>(context)->body(status, {bytes, size});
  };
  char reason[512] = "";
  const int status = client_module().perform(exchange, reason, sizeof reason);
  arriving.reply.status = status;
  if (status == 0)
    arriving.reply.problem = arriving.too_large ? "the answer has more bytes than were expected" : reason;
  return std::move(arriving.reply);
}

std::string sign_rs256(std::string_view key, std::string_view text) {
  unsigned char signature[2048];  // of keys up to 16384 bits
  char reason[256] = "";
  const std::size_t size = client_module().sign(key.data(), key.size(), text.data(), text.size(), signature,
                                                sizeof signature, reason, sizeof reason);
  if (size == 0) throw ValueError(reason);
  return {reinterpret_cast<const char*>(signature), size};
}

}  // namespace capibara
