// SHA-256 of a text: names of cached files, and the proof that a file holds what was stored under its key.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace capibara {

// No one can make two texts with the same digest, not even on purpose.
struct Digest {
  std::array<uint8_t, 32> bytes{};
  std::string hex() const;  // 64 digits
  friend bool operator==(const Digest&, const Digest&) = default;
  friend auto operator<=>(const Digest&, const Digest&) = default;
};
Digest digest(std::string_view text);
// HMAC-SHA-256 (RFC 2104): only those who know the secret can compute it.
Digest keyed_digest(std::string_view secret, std::string_view text);

}  // namespace capibara
