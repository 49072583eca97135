// Requests as they come over the wire, and whom they were meant for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capibara {

// A request: `path` without what follows '?', `token` and `host` as the headers X-Capibara-Token and Host have them.
struct HttpCall {
  std::string method, path, token, host;
};

// Reads the lines up to the empty one; nothing where they are malformed. What is given twice and read here is
// malformed.
std::optional<HttpCall> parse_http_head(std::string_view head);

// Which names a server answers to. A page of another site whose name leads to this machine carries that name as Host:
// it is refused, or it could read whatever a browser of this machine can.
class HostNames {
 public:
  // `bound` is the address that the server listens on, in digits; `names` are those that users have allowed.
  HostNames(const std::string& bound, const std::vector<std::string>& names);

  // Whether a Host is localhost, a loopback address, the bound address, one of the names, or, where the server listens
  // on all addresses, any address in digits, for no name leads to it.
  bool has(std::string_view host) const;

 private:
  std::string bound_;  // as 16 bytes
  bool listens_to_all_;
  std::vector<std::string> names_;
};

}  // namespace capibara
