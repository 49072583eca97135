// JSON as values, and writing it.
#include "io/files/json.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "io/files/json_reader.h"

namespace capibara {

namespace {

// The result types for JsonReader: objects sorted by key.
struct JsonValues {
  using Value = Json;
  using List = Json::List;
  using Object = Json::Object;

  static bool add(Object& members, std::string key, Json value) {
    return members.emplace(std::move(key), std::move(value)).second;
  }
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

Json Json::parse(std::string_view text, const std::string& what) { return JsonReader<JsonValues>(text, what).whole(); }

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
