// Requests over HTTP: a libcurl module, opened when the first request is sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/uio.h>

namespace capibara {

struct HttpRequest {
  std::string method = "GET", url;
  std::vector<std::string> headers;  // "Name: value"
  std::vector<iovec> body;           // sent without a copy
  std::span<std::byte> into;         // destination of the body of a 200 or 206; such an answer must fit
  double timeout_seconds = 60;       // of the whole exchange
  double silence_seconds = 20;       // without a byte in either direction
};

// Status 0: no answer came, for the reason in `problem`.
struct HttpReply {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // of at most 64 MiB; empty if it was stored in `into`
  uint64_t received = 0;                       // bytes stored in `into`
  std::string problem;
};

// Sends a request once. Redirects are not followed. Raises RuntimeError if the module cannot be opened.
HttpReply send_request(const HttpRequest& request);

// The signature of RS256 (RSASSA-PKCS1-v1_5 with SHA-256) by a private key in PEM. Raises ValueError.
std::string sign_rs256(std::string_view key, std::string_view text);

// The module's interface; plain types, since it may come from another compiler.
struct HttpClientModule {
  struct Exchange {
    const char* method;
    const char* url;
    const char* const* headers;  // ends with null
    const iovec* body;
    std::size_t body_pieces;
    double timeout_seconds, silence_seconds;
    void* context;
    void (*on_header)(void* context, const char* line, std::size_t size);
    bool (*on_body)(void* context, int status, const char* bytes, std::size_t size);  // false ends the exchange
  };
  int (*perform)(const Exchange& exchange, char* reason, std::size_t reason_size);  // the status
  // The size of the signature in bytes; 0 and a reason if there is none.
  std::size_t (*sign)(const char* key, std::size_t key_size, const char* text, std::size_t size, unsigned char* to,
                      std::size_t capacity, char* reason, std::size_t reason_size);
};

}  // namespace capibara

extern "C" const capibara::HttpClientModule* capibara_http_client();
