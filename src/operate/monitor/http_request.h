// HTTP requests as received, and the host names that they may be addressed to.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capibara {

// A request: `path` without the query, the others from the headers X-Capibara-Token, Host, Authorization, Content-Type
// and Content-Length. `body` is read by servers that accept one.
struct HttpCall {
  std::string method, path, token, host, authorization, content_type, body;
  std::optional<std::size_t> content_length;
  bool unknown_length = false;  // of the body: chunks, or a Content-Length that is not a number
};

// Parses the lines up to the empty one; absent if they are malformed. Duplicates of a header that is read here
// are malformed.
std::optional<HttpCall> parse_http_head(std::string_view head);

// The names that a server accepts. A page of another site whose name resolves to this machine sends that name as Host:
// it is rejected, or it could read whatever a browser on this machine can.
class HostNames {
 public:
  // `bound` is the numeric address that the server listens on; `names` are allowed by users.
  HostNames(const std::string& bound, const std::vector<std::string>& names);

  // True if a Host is localhost, a loopback address, the bound address, one of the names, or, if the server listens
  // on all addresses, any numeric address, since no DNS name is involved.
  bool has(std::string_view host) const;

 private:
  std::string bound_;  // as 16 bytes
  bool listens_to_all_;
  std::vector<std::string> names_;
};

}  // namespace capibara
