// Base64 as defined by RFC 4648.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace capibara {

std::string base64(std::string_view bytes);
// With - and _ for + and /, and without padding.
std::string base64_url(std::string_view bytes);
// Empty if it is not base64.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace capibara
