// JSON: a value, parsed from untrusted text and written in a fixed order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace capibara {

// Objects are sorted by key. Integers that fit stay integers.
class Json {
 public:
  using List = std::vector<Json>;
  using Object = std::map<std::string, Json, std::less<>>;

  Json() = default;  // null
  Json(bool value) : value_(value) {}
  Json(int value) : value_(static_cast<int64_t>(value)) {}
  Json(int64_t value) : value_(value) {}
  Json(double value) : value_(value) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(List value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}

  // Raises a ValueError that begins with `what` and names line and column. Nesting deeper than 100 and duplicate keys
  // in an object are refused; NaN and Infinity are accepted, as Python writes them.
  static Json parse(std::string_view text, const std::string& what);
  std::string dump() const;  // on one line

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  // The value as each type; null if it is another.
  const bool* boolean() const { return std::get_if<bool>(&value_); }
  const int64_t* integer() const { return std::get_if<int64_t>(&value_); }
  std::optional<double> number() const {  // integers too
    if (const int64_t* whole = integer()) return static_cast<double>(*whole);
    const double* real = std::get_if<double>(&value_);
    return real ? std::optional<double>(*real) : std::nullopt;
  }
  const std::string* text() const { return std::get_if<std::string>(&value_); }
  const List* list() const { return std::get_if<List>(&value_); }
  const Object* object() const { return std::get_if<Object>(&value_); }
  List* list() { return std::get_if<List>(&value_); }
  Object* object() { return std::get_if<Object>(&value_); }
  // The member of an object; null if it is missing, or this is not an object.
  const Json* find(std::string_view key) const;

  friend bool operator==(const Json&, const Json&) = default;

 private:
  void print(std::string& out) const;

  std::variant<std::monostate, bool, int64_t, double, std::string, List, Object> value_;
};

// A text between quotes, escaped as JSON requires.
std::string json_quoted(std::string_view text);

}  // namespace capibara
