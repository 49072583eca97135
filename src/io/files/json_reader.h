// Reading JSON by recursive descent, from text that nobody vouches for, into values of the caller's type.
#pragma once

#include <capibara/error.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "io/files/json.h"
#include "io/files/json_cursor.h"

namespace capibara {

// `Values` says what is made: Value, of null, bool, int64_t, double, std::string, List and Object; List, which has
// push_back; Object; add(object, key, value), which is false for a key that stands twice.
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
      if (!Values::add(members, key, std::move(member))) fail(concat("the key ", json_quoted(key), " stands twice"));
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
