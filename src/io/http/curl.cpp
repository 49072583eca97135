// Part of the module libcapibara_http.so: libcurl behind a plain interface.
#include <curl/curl.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>

#include "io/files/http_client.h"
#include "io/http/signing.h"

namespace {

using Exchange = capibara::HttpClientModule::Exchange;

// Keeps a connection to each server open for the thread's next request.
struct Handle {
  CURL* curl = curl_easy_init();
  Handle() = default;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (curl) curl_easy_cleanup(curl);
  }
};

struct Sending {
  const Exchange& exchange;
  CURL* curl;
  std::size_t piece = 0, offset = 0;

  std::size_t take(char* to, std::size_t capacity) {
    std::size_t taken = 0;
    while (taken < capacity && piece < exchange.body_pieces) {
      const iovec& from = exchange.body[piece];
      const std::size_t size = std::min(capacity - taken, from.iov_len - offset);
      if (size > 0) std::memcpy(to + taken, static_cast<const char*>(from.iov_base) + offset, size);
      taken += size;
      offset += size;
      if (offset == from.iov_len) ++piece, offset = 0;
    }
    return taken;
  }

  bool rewind(curl_off_t to) {
    piece = offset = 0;
    for (auto left = static_cast<std::size_t>(to); left > 0;) {
      if (piece == exchange.body_pieces) return false;
      const std::size_t size = std::min(left, exchange.body[piece].iov_len);
      left -= size;
      offset = size;
      if (offset == exchange.body[piece].iov_len) ++piece, offset = 0;
    }
    return true;
  }
};

std::size_t on_read(char* to, std::size_t size, std::size_t count, void* context) {
  return static_cast<Sending*>(context)->take(to, size * count);
}

int on_seek(void* context, curl_off_t offset, int origin) {
  if (origin != SEEK_SET || !static_cast<Sending*>(context)->rewind(offset)) return CURL_SEEKFUNC_FAIL;
  return CURL_SEEKFUNC_OK;
}

std::size_t on_header(char* bytes, std::size_t size, std::size_t count, void* context) {
  const Exchange& exchange = static_cast<Sending*>(context)->exchange;
  exchange.on_header(exchange.context, bytes, size * count);
  return size * count;
}

std::size_t on_write(char* bytes, std::size_t size, std::size_t count, void* context) {
  auto* sending = static_cast<Sending*>(context);
  long status = 0;
  curl_easy_getinfo(sending->curl, CURLINFO_RESPONSE_CODE, &status);
  const bool taken =
      sending->exchange.on_body(sending->exchange.context, static_cast<int>(status), bytes, size * count);
  return taken ? size * count : 0;
}

int perform(const Exchange& exchange, char* reason, std::size_t reason_size) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  thread_local Handle handle;
  CURL* const curl = handle.curl;
  if (ready != CURLE_OK || !curl) {
    std::snprintf(reason, reason_size, "libcurl cannot be used here");
    return 0;
  }
  curl_easy_reset(curl);  // options alone; connections stay
  Sending sending{exchange, curl};
  char detail[CURL_ERROR_SIZE] = "";
  curl_slist* headers = curl_slist_append(nullptr, "Expect:");
  for (const char* const* header = exchange.headers; *header; ++header) headers = curl_slist_append(headers, *header);
  auto milliseconds = [](double seconds) { return std::lround(std::clamp(seconds, 0.001, 1e6) * 1000); };
  curl_easy_setopt(curl, CURLOPT_URL, exchange.url);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, milliseconds(exchange.timeout_seconds));
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(std::min(exchange.silence_seconds, 10.0)));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, std::lround(std::clamp(exchange.silence_seconds, 1.0, 1e6)));
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &sending);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_write);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &sending);
  curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, 1L << 19);
  curl_easy_setopt(curl, CURLOPT_UPLOAD_BUFFERSIZE, 1L << 20);
  // Emulators and the metadata server are on this machine: no proxy for them.
  if (std::strncmp(exchange.url, "http://", 7) == 0) curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
  const std::string method = exchange.method;
  if (method == "PUT" || method == "POST") {
    curl_off_t bytes = 0;
    for (std::size_t i = 0; i < exchange.body_pieces; ++i) bytes += static_cast<curl_off_t>(exchange.body[i].iov_len);
    curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, bytes);
    curl_easy_setopt(curl, CURLOPT_READFUNCTION, on_read);
    curl_easy_setopt(curl, CURLOPT_READDATA, &sending);
    curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, on_seek);
    curl_easy_setopt(curl, CURLOPT_SEEKDATA, &sending);
  }
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, exchange.method);
  const CURLcode code = curl_easy_perform(curl);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  curl_slist_free_all(headers);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, nullptr);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, nullptr);
  if (code == CURLE_OK) return static_cast<int>(status);
  std::snprintf(reason, reason_size, "%s", detail[0] != '\0' ? detail : curl_easy_strerror(code));
  return 0;
}

constexpr capibara::HttpClientModule client{perform, capibara_sign_rs256};

}  // namespace

extern "C" const capibara::HttpClientModule* capibara_http_client() { return &client; }
