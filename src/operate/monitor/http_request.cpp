// Parses the head of a request, and checks its Host.
#include "operate/monitor/http_request.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

namespace capibara {

namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// A character allowed in methods and header names (RFC 9110, "token").
bool is_token_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}
bool is_token(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_token_letter); }
bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c == '\t' || static_cast<unsigned char>(c) >= 0x20; });
}

// A numeric address as 16 bytes, with IPv4 mapped; empty if it is not one.
std::string address_bytes(const std::string& text) {
  std::string bytes(16, '\0');
  if (::inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) return bytes;
  bytes[10] = bytes[11] = '\xff';
  return ::inet_pton(AF_INET, text.c_str(), bytes.data() + 12) == 1 ? bytes : "";
}

bool is_mapped(const std::string& bytes) { return bytes.starts_with(std::string(10, '\0') + "\xff\xff"); }
bool is_loopback(const std::string& bytes) {
  return bytes == address_bytes("::1") || (is_mapped(bytes) && bytes[12] == 127);
}

// A Host without its port, in lower case; empty if malformed.
std::string name_of_host(std::string_view host) {
  std::string_view name = host, port;
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    if (end == std::string_view::npos) return "";
    name = host.substr(1, end - 1);
    port = host.substr(end + 1);
  } else if (const std::size_t colon = host.find(':'); colon != std::string_view::npos) {
    name = host.substr(0, colon);
    port = host.substr(colon);
  }
  if (!port.empty() && (port[0] != ':' || port.find_first_not_of("0123456789", 1) != std::string_view::npos)) return "";
  if (name.ends_with('.')) name.remove_suffix(1);
  return lower(name);
}

}  // namespace

std::optional<HttpCall> parse_http_head(std::string_view head) {
  HttpCall call;
  std::string length, coding;
  struct Header {
    std::string_view name;
    std::string* value;
    bool seen = false;
  } headers[] = {{"host", &call.host},
                 {"x-capibara-token", &call.token},
                 {"authorization", &call.authorization},
                 {"content-type", &call.content_type},
                 {"content-length", &length},
                 {"transfer-encoding", &coding}};
  bool first = true;
  while (!head.empty()) {
    const std::size_t end = head.find('\n');
    std::string_view line = head.substr(0, end);
    head.remove_prefix(end == std::string_view::npos ? head.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!is_printable(line)) return std::nullopt;
    if (first) {
      const std::size_t space = line.find(' '), last = line.rfind(' ');
      if (space == std::string_view::npos || last <= space) return std::nullopt;
      const std::string_view target = line.substr(space + 1, last - space - 1), version = line.substr(last + 1);
      if (!is_token(line.substr(0, space)) || !target.starts_with('/') || target.find(' ') != std::string_view::npos ||
          (version != "HTTP/1.1" && version != "HTTP/1.0")) {
        return std::nullopt;
      }
      call.method = line.substr(0, space);
      call.path = target.substr(0, target.find('?'));
      first = false;
      continue;
    }
    if (line.empty()) break;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return std::nullopt;
    const std::string name = lower(line.substr(0, colon));
    const std::string_view value = trimmed(line.substr(colon + 1));
    for (Header& header : headers) {
      if (header.name != name) continue;
      if (std::exchange(header.seen, true)) return std::nullopt;
      *header.value = value;
    }
  }
  if (first) return std::nullopt;
  call.unknown_length = !coding.empty();
  if (!length.empty()) {
    std::size_t bytes = 0;
    const char* const end = length.data() + length.size();
    const auto read = std::from_chars(length.data(), end, bytes);
    if (read.ec != std::errc() || read.ptr != end)
      call.unknown_length = true;
    else
      call.content_length = bytes;
  }
  return call;
}

HostNames::HostNames(const std::string& bound, const std::vector<std::string>& names)
    : bound_(address_bytes(bound)),
      listens_to_all_(bound_ == address_bytes("0.0.0.0") || bound_ == address_bytes("::")) {
  for (const std::string& name : names) names_.push_back(name_of_host(name));
}

bool HostNames::has(std::string_view host) const {
  const std::string name = name_of_host(host);
  if (name.empty()) return false;
  if (name == "localhost" || std::find(names_.begin(), names_.end(), name) != names_.end()) return true;
  const std::string bytes = address_bytes(name);
  return !bytes.empty() && (listens_to_all_ || is_loopback(bytes) || bytes == bound_);
}

}  // namespace capibara
