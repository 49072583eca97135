// Decodes UTF-8 and looks up classes in a table of ranges.
#include "models/serving/unicode.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace capibara {

namespace {

struct CodeRange {
  char32_t first, last;
};
#include "models/serving/unicode_classes.inc"

bool within(std::span<const CodeRange> ranges, char32_t code) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), code,
                                      [](char32_t value, const CodeRange& range) { return value < range.first; });
  return after != ranges.begin() && code <= std::prev(after)->last;
}

bool is_space(char32_t code) {
  return (code >= 0x9 && code <= 0xD) || code == 0x20 || code == 0x85 || code == 0xA0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F ||
         code == 0x3000;
}

Character::Kind kind_of(char32_t code) {
  if (is_space(code)) return Character::space;
  if (within(letters, code)) return Character::letter;
  return within(numbers, code) ? Character::number : Character::other;
}

// The number of bytes that a character of this first byte has; 0 if no character begins so.
std::size_t length_by_first(unsigned char first) {
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// The bytes of a character that breaks off: its first one, and those after it that could continue it.
std::size_t begun_character(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t length = length_by_first(first);
  std::size_t bytes = 1;
  while (bytes + 1 < length && bytes < text.size() && continues(text[bytes])) {
    const auto byte = static_cast<unsigned char>(text[bytes]);
    const bool too_low = (first == 0xE0 && byte < 0xA0) || (first == 0xF0 && byte < 0x90);
    const bool too_high = (first == 0xED && byte > 0x9F) || (first == 0xF4 && byte > 0x8F);
    if (bytes == 1 && (too_low || too_high)) break;
    ++bytes;
  }
  return bytes;
}

}  // namespace

Character character_at(std::string_view text, std::size_t at) {
  static constexpr char32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const auto first = static_cast<unsigned char>(text[at]);
  const Character broken = {first, 1, Character::other};
  const std::size_t length = length_by_first(first);
  if (length == 0 || at + length > text.size()) return broken;
  char32_t code = length == 1 ? first : first & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if (!continues(text[at + i])) return broken;
    code = code << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3F);
  }
  if (code < smallest[length] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return broken;
  return {code, length, kind_of(code)};
}

std::size_t whole_characters(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const char byte = text[text.size() - back];
    if (continues(byte)) continue;
    return length_by_first(static_cast<unsigned char>(byte)) > back ? text.size() - back : text.size();
  }
  return text.size();
}

std::string repaired_utf8(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const Character next = character_at(text, at);
    const bool broken = next.bytes == 1 && next.code >= 0x80;
    result += broken ? std::string_view("\uFFFD") : text.substr(at, next.bytes);
    at += broken ? begun_character(text.substr(at)) : next.bytes;
  }
  return result;
}

}  // namespace capibara
