// A libFuzzer target: no request may crash the monitor's parser, and only its own host names are answered.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "operate/monitor/http_request.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const capibara::HostNames names("127.0.0.1", {"node7.example"});
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto call = capibara::parse_http_head(text);
  if (!call) return 0;
  if (!call->path.starts_with('/') || call->method.empty()) std::abort();
  for (const std::string& field : {call->method, call->path, call->host, call->token}) {
    if (field.find_first_of("\r\n") != std::string::npos || field.find('\0') != std::string::npos) std::abort();
  }
  if (!names.has(call->host)) return 0;
  // An accepted host begins like one of its names, followed by a port at most.
  std::string host = call->host;
  for (char& c : host) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  if (!host.starts_with("127.") && !host.starts_with("localhost") && !host.starts_with("node7.example") &&
      !host.starts_with('[') && host.find("::1") == std::string::npos) {
    std::abort();
  }
  return 0;
}
