// Three bytes as four letters, and back.
#include "io/files/base64.h"

#include <algorithm>
#include <cstdint>

namespace capibara {

namespace {

constexpr std::string_view base64_letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string base64(std::string_view bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t j = 0; j < 3; ++j) word = word << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    for (std::size_t j = 0; j < 4; ++j) out += j <= count ? base64_letters[word >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

std::string base64_url(std::string_view bytes) {
  std::string out = base64(bytes);
  while (!out.empty() && out.back() == '=') out.pop_back();
  std::replace(out.begin(), out.end(), '+', '-');
  std::replace(out.begin(), out.end(), '/', '_');
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  std::string out;
  uint32_t word = 0;
  int bits = 0;
  for (const char letter : text) {
    const std::size_t value = base64_letters.find(letter);
    if (value == std::string_view::npos) return std::nullopt;
    word = word << 6 | static_cast<uint32_t>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    out += static_cast<char>(word >> bits & 0xFF);
  }
  return out;
}

}  // namespace capibara
