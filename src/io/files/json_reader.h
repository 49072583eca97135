// Reading JSON by recursive descent, from untrusted text, into values of the caller's type.
#pragma once

#include <capibara/error.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "io/files/json.h"

namespace capibara {

// Appends a code point as UTF-8.
inline void append_utf8(std::string& out, uint32_t code) {
  auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6), put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18), put(0x80 | (code >> 12 & 0x3F)), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
  }
}

// The position of a JSON reader in its text, and the strings that it parses.
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

// `Values` defines the results: Value, of null, bool, int64_t, double, std::string, List and Object; List, which has
// push_back; Object; add(object, key, value), which is false for a duplicate key.
template <class Values>
class JsonReader : JsonCursor {
  using Value = typename Values::Value;

 public:
  using JsonCursor::JsonCursor;

  Value whole() {
    Value result = value(0);
    skip_blanks();
    if (at_ != text_.size()) fail("expected the end");
    return result;
  }

 private:
  static constexpr int max_depth = 100;  // of nested brackets: a bound on the stack

  Value value(int depth) {
    if (depth > max_depth) fail(concat("nested deeper than ", max_depth));
    skip_blanks();
    switch (next()) {
      case '{':
        return object(depth);
      case '[':
        return list(depth);
      case '"':
        return string();
      default:
        break;
    }
    if (take("true")) return true;
    if (take("false")) return false;
    if (take("null")) return Value();
    if (take("NaN")) return std::numeric_limits<double>::quiet_NaN();
    if (take("Infinity")) return std::numeric_limits<double>::infinity();
    if (take("-Infinity")) return -std::numeric_limits<double>::infinity();
    return number();
  }

  Value object(int depth) {
    typename Values::Object members;
    ++at_;
    skip_blanks();
    if (take("}")) return Value(std::move(members));
    while (true) {
      skip_blanks();
      if (next() != '"') fail("expected a key in quotes");
      std::string key = string();
      skip_blanks();
      if (!take(":")) fail("expected ':'");
      Value member = value(depth + 1);
      if (!Values::add(members, key, std::move(member))) fail(concat("the key ", json_quoted(key), " occurs twice"));
      skip_blanks();
      if (take("}")) return Value(std::move(members));
      if (!take(",")) fail("expected ',' or '}'");
    }
  }

  Value list(int depth) {
    typename Values::List elements;
    ++at_;
    skip_blanks();
    if (take("]")) return Value(std::move(elements));
    while (true) {
      elements.push_back(value(depth + 1));
      skip_blanks();
      if (take("]")) return Value(std::move(elements));
      if (!take(",")) fail("expected ',' or ']'");
    }
  }

  Value number() {
    const std::size_t length = std::min(text_.find_first_not_of("+-0123456789.eE", at_), text_.size()) - at_;
    const char* const begin = text_.data() + at_;
    const char* const end = begin + length;
    if (length == 0 || (*begin != '-' && (*begin < '0' || *begin > '9'))) fail("expected a value");
    int64_t integer = 0;
    if (const auto read = std::from_chars(begin, end, integer); read.ec == std::errc() && read.ptr == end) {
      at_ += length;
      return integer;
    }
    double real = 0;
    const auto read = std::from_chars(begin, end, real);
    if (read.ptr != end || read.ec != std::errc()) fail("not a number that a double can hold");
    at_ += length;
    return real;
  }
};

}  // namespace capibara
