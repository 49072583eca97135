// Reading JSON by recursive descent, and writing it.
#include "io/json.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

#include <capibara/error.h>

namespace capibara {

namespace {

constexpr int max_json_depth = 100;

class JsonReader {
 public:
  JsonReader(std::string_view text, const std::string& what) : text_(text), what_(what) {}

  Json whole() {
    Json result = value(0);
    skip_blanks();
    if (at_ != text_.size()) fail("expected the end");
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    std::size_t line = 1, column = 1;
    for (const char c : text_.substr(0, at_)) {
      column = c == '\n' ? 1 : column + 1;
      line += c == '\n';
    }
    throw ValueError(concat(what_, ": not valid JSON at line ", line, ", column ", column, ": ", message));
  }

  void skip_blanks() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  Json value(int depth) {
    if (depth > max_json_depth) fail(concat("nested deeper than ", max_json_depth));
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
    if (take("null")) return {};
    if (take("NaN")) return std::numeric_limits<double>::quiet_NaN();
    if (take("Infinity")) return std::numeric_limits<double>::infinity();
    if (take("-Infinity")) return -std::numeric_limits<double>::infinity();
    return number();
  }

  Json object(int depth) {
    Json::Object members;
    ++at_;
    skip_blanks();
    if (take("}")) return members;
    while (true) {
      skip_blanks();
      if (next() != '"') fail("expected a key in quotes");
      std::string key = string();
      skip_blanks();
      if (!take(":")) fail("expected ':'");
      Json member = value(depth + 1);
      if (!members.emplace(key, std::move(member)).second) fail(concat("the key ", json_quoted(key), " stands twice"));
      skip_blanks();
      if (take("}")) return members;
      if (!take(",")) fail("expected ',' or '}'");
    }
  }

  Json list(int depth) {
    Json::List elements;
    ++at_;
    skip_blanks();
    if (take("]")) return elements;
    while (true) {
      elements.push_back(value(depth + 1));
      skip_blanks();
      if (take("]")) return elements;
      if (!take(",")) fail("expected ',' or ']'");
    }
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

  Json number() {
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

  std::string_view text_;
  const std::string& what_;
  std::size_t at_ = 0;
};

std::string real_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  char text[32];
  const auto written = std::to_chars(text, text + sizeof text, value);
  std::string result(text, written.ptr);
  return result.find_first_of(".e") == std::string::npos ? result + ".0" : result;
}

}  // namespace

Json Json::parse(std::string_view text, const std::string& what) { return JsonReader(text, what).whole(); }

const Json* Json::find(std::string_view key) const {
  const Object* members = object();
  if (!members) return nullptr;
  const auto it = members->find(key);
  return it == members->end() ? nullptr : &it->second;
}

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      out += code;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

void Json::print(std::string& out) const {
  if (is_null()) {
    out += "null";
  } else if (const bool* flag = boolean()) {
    out += *flag ? "true" : "false";
  } else if (const int64_t* whole = integer()) {
    out += std::to_string(*whole);
  } else if (const double* real = std::get_if<double>(&value_)) {
    out += real_text(*real);
  } else if (const std::string* words = text()) {
    out += json_quoted(*words);
  } else if (const List* elements = list()) {
    const char* separator = "[";
    for (const Json& element : *elements) {
      out += separator;
      element.print(out);
      separator = ", ";
    }
    out += elements->empty() ? "[]" : "]";
  } else {
    const char* separator = "{";
    for (const auto& [key, member] : *object()) {
      out += separator + json_quoted(key) + ": ";
      member.print(out);
      separator = ", ";
    }
    out += object()->empty() ? "{}" : "}";
  }
}

std::string Json::dump() const {
  std::string out;
  print(out);
  return out;
}

}  // namespace capibara
