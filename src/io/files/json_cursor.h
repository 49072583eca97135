// Where a reader of JSON is in its text, and the texts in quotes that it meets.
#pragma once

#include <capibara/error.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace capibara {

class JsonCursor {
 public:
  // Errors begin with `what`.
  JsonCursor(std::string_view text, const std::string& what) : text_(text), what_(what) {}

 protected:
  [[noreturn]] void fail(const std::string& message) const {
    std::size_t line = 1, column = 1;
    for (const char c : text_.substr(0, at_)) {
      column = c == '\n' ? 1 : column + 1;
      line += c == '\n';
    }
    throw ParseError(concat(what_, ": not valid JSON at line ", line, ", column ", column, ": ", message));
  }

  void skip_blanks() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  uint32_t four_digits() {
    uint32_t code = 0;
    const char* const begin = text_.data() + at_;
    if (text_.size() - at_ < 4 || std::from_chars(begin, begin + 4, code, 16).ptr != begin + 4)
      fail("expected four hexadecimal digits");
    at_ += 4;
    return code;
  }

  static void append_utf8(std::string& out, uint32_t code) {
    auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
    if (code < 0x80) {
      put(code);
    } else if (code < 0x800) {
      put(0xC0 | code >> 6), put(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
      put(0xE0 | code >> 12), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
    } else {
      put(0xF0 | code >> 18), put(0x80 | (code >> 12 & 0x3F)), put(0x80 | (code >> 6 & 0x3F)),
          put(0x80 | (code & 0x3F));
    }
  }

  std::string string() {
    std::string out;
    ++at_;
    while (true) {
      if (at_ >= text_.size()) fail("a text does not end");
      const char c = text_[at_++];
      if (c == '"') return out;
      if (static_cast<unsigned char>(c) < 0x20) fail("a control character in a text");
      if (c != '\\') {
        out += c;
        continue;
      }
      const char escaped = next();
      ++at_;
      static constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
      if (const std::size_t found = letters.find(escaped); found != std::string_view::npos && escaped) {
        out += meanings[found];
      } else if (escaped == 'u') {
        uint32_t code = four_digits();
        if (code >= 0xD800 && code < 0xDC00 && take("\\u")) {  // the first half of a pair
          const uint32_t second = four_digits();
          if (second < 0xDC00 || second > 0xDFFF) fail("half of a surrogate pair");
          code = 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00);
        } else if (code >= 0xD800 && code <= 0xDFFF) {
          fail("half of a surrogate pair");
        }
        append_utf8(out, code);
      } else {
        fail("an unknown escape");
      }
    }
  }

  std::string_view text_;
  const std::string& what_;
  std::size_t at_ = 0;
};

}  // namespace capibara
