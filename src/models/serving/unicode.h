// Characters of UTF-8 text, and the classes that tokenizers split text by.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace capibara {

struct Character {
  enum Kind : uint8_t { letter, number, space, other };
  char32_t code;
  std::size_t bytes;
  Kind kind;
};

// The character at a position of a text that does not end there. A byte that is not UTF-8 is a character of kind other.
Character character_at(std::string_view text, std::size_t at);

// The length of the longest prefix that does not end within a character.
std::size_t whole_characters(std::string_view text);

// The text with U+FFFD for what is not UTF-8: one for each beginning of a character that breaks off, and for other
// bytes.
std::string repaired_utf8(std::string_view text);

}  // namespace capibara
