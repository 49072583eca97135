// Reads and writes the plain text files of expected values that tests/oracle/expected.py defines, and compares arrays.
#pragma once

#include <capibara/array.h>
#include <capibara/dtype.h>
#include <capibara/error.h>
#include "data/recordings.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capibara::oracle {

// One array of a file: elements in row-major order, little-endian, one byte for bool and sub-byte types.
struct ExpectedArray {
  DType dtype = DType::float32;
  Shape shape;
  bool weak_type = false;
  std::vector<std::uint8_t> bytes;

  Array to_array() const { return Array::from_host(dtype, shape, bytes.data(), weak_type); }
};

struct Record {
  std::string name;
  std::vector<std::pair<std::string, std::string>> fields;  // also 'type KEY' lines, under the key "type KEY"
  std::vector<std::pair<std::string, ExpectedArray>> arrays;
  std::map<std::string, std::string> texts;  // lines joined by newlines, without a final one

  std::optional<std::string> field(std::string_view key) const {
    for (const auto& [k, value] : fields) {
      if (k == key) return value;
    }
    return std::nullopt;
  }
  std::vector<ExpectedArray> all(std::string_view key) const {
    std::vector<ExpectedArray> found;
    for (const auto& [k, value] : arrays) {
      if (k == key) found.push_back(value);
    }
    return found;
  }
};

namespace detail {

inline int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  throw ValueError(concat("expected file: '", c, "' is not a hex digit"));
}

inline std::vector<std::uint8_t> parse_hex(std::string_view text) {
  std::vector<std::uint8_t> bytes;
  if (text == "-") return bytes;
  if (text.size() % 2 != 0) throw ValueError("expected file: an odd number of hex digits");
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(hex_digit(text[i]) * 16 + hex_digit(text[i + 1])));
  }
  return bytes;
}

// Splits "float32[2,3]".
inline void parse_type(std::string_view spec, ExpectedArray& array) {
  std::size_t open = spec.find('[');
  std::optional<DType> dtype = dtype_from_name(spec.substr(0, open));
  if (open == std::string_view::npos || !dtype) throw ValueError(concat("expected file: bad type '", spec, "'"));
  array.dtype = *dtype;
  std::stringstream dims{std::string(spec.substr(open + 1, spec.size() - open - 2))};
  for (std::string dim; std::getline(dims, dim, ',');) array.shape.push_back(std::stoll(dim));
}

inline std::string first_word(std::string& rest) {
  std::size_t end = rest.find(' ');
  std::string word = rest.substr(0, end);
  rest = end == std::string::npos ? "" : rest.substr(end + 1);
  return word;
}

}  // namespace detail

// Calls visit(record) for every record of the file.
template <class Visit>
void read_records(const std::string& path, Visit visit) {
  std::ifstream file(path);
  if (!file) throw ValueError(concat("expected file: cannot open '", path, "'"));
  Record record;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::string word = detail::first_word(line);
    if (word == "record") {
      (record = Record{}).name = line;
    } else if (word == "field") {
      std::string key = detail::first_word(line);
      record.fields.emplace_back(key, line);
    } else if (word == "type") {
      std::string key = detail::first_word(line);
      record.fields.emplace_back("type " + key, line);
    } else if (word == "array") {
      std::string key = detail::first_word(line);
      ExpectedArray array;
      detail::parse_type(detail::first_word(line), array);
      array.weak_type = detail::first_word(line) == "weak";
      array.bytes = detail::parse_hex(line);
      std::size_t wanted = static_cast<std::size_t>(element_count(array.shape) * storage_size(array.dtype));
      if (array.bytes.empty()) array.bytes.resize(wanted);  // float0 carries no bytes
      if (array.bytes.size() != wanted) {
        throw ValueError(
            concat("expected file: record ", record.name, ": ", array.bytes.size(), " bytes, expected ", wanted));
      }
      record.arrays.emplace_back(key, std::move(array));
    } else if (word == "text") {
      std::string key = detail::first_word(line);
      std::string text;
      for (long count = std::stol(line), i = 0; i < count; ++i) {
        std::string part;
        std::getline(file, part);
        text += (i ? "\n" : "") + part;
      }
      record.texts[key] = std::move(text);
    } else if (word == "end") {
      visit(std::as_const(record));
    } else {
      throw ValueError(concat("expected file: unknown line '", word, "'"));
    }
  }
}

inline std::vector<Record> read_records(const std::string& path) {
  std::vector<Record> records;
  read_records(path, [&](const Record& record) { records.push_back(record); });
  return records;
}

// Lines in the format, for files that judge.py reads.
inline std::string array_line(std::string_view key, const Array& array) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string line = concat("array ", key, ' ', dtype_name(array.dtype()), '[');
  for (std::size_t i = 0; i < array.shape().size(); ++i) line += (i ? "," : "") + std::to_string(array.shape()[i]);
  line += array.weak_type() ? "] weak " : "] strong ";
  std::size_t count = static_cast<std::size_t>(array.size() * storage_size(array.dtype()));
  if (count == 0 || array.dtype() == DType::float0) return line + "-\n";
  const auto* data = reinterpret_cast<const std::uint8_t*>(array.raw_data());
  for (std::size_t i = 0; i < count; ++i) {
    line += digits[data[i] >> 4];
    line += digits[data[i] & 15];
  }
  return line + "\n";
}

inline std::string text_lines(std::string_view key, std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  std::size_t lines = text.empty() ? 0 : 1;
  for (char c : text) lines += c == '\n';
  return concat("text ", key, ' ', lines, '\n', text, text.empty() ? "" : "\n");
}

// One record of a bundle for judge.py: a module, its inputs and our results.
inline std::string judge_record(std::string_view name, std::string_view module_text, std::span<const Array> inputs,
                                std::span<const Array> outputs, std::string_view tolerance = "") {
  std::string record = concat("record ", name, '\n');
  if (!tolerance.empty()) record += concat("field tolerance ", tolerance, '\n');
  for (const Array& input : inputs) record += array_line("input", input);
  for (const Array& output : outputs) record += array_line("output", output);
  return record + text_lines("mlir", module_text) + "end\n\n";
}

// The tolerance of a value; integers, bools and keys must always be equal.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
  double ulps = -1;  // if >= 0, the only criterion: steps between representable numbers of the dtype

  static Tolerance exact() { return {}; }
  static Tolerance ulp(double count) { return {0, 0, count}; }
  static Tolerance of_dtype(DType dtype) {
    switch (real_dtype(dtype)) {
      case DType::float64:
        return {1e-12, 1e-13};
      case DType::float32:
        return {2e-5, 2e-6};
      case DType::float16:
        return {4e-3, 1e-3};
      case DType::bfloat16:
        return {2e-2, 1e-2};
      default:
        return {0.13, 0.07};
    }
  }
  // "exact", "ulp N" or "close RELATIVE ABSOLUTE", as in fields of the files.
  static Tolerance parse(const std::string& text) {
    std::stringstream words(text);
    std::string word;
    Tolerance result;
    words >> word;
    if (word == "ulp") {
      words >> result.ulps;
    } else if (word == "close") {
      words >> result.relative >> result.absolute;
    } else if (word != "exact") {
      throw ValueError(concat("tolerance: 'exact', 'ulp N' or 'close R A' expected, got '", text, "'"));
    }
    return result;
  }
};

// The spacing of the floating dtype at a value.
inline double spacing(DType dtype, double value) {
  const DTypeRow& row = dtype_row(real_dtype(dtype));
  int lowest = 2 - (1 << (row.exponent_bits - 1));
  int exponent = value == 0 ? lowest : std::max(lowest, std::ilogb(value));
  return std::ldexp(1.0, exponent - row.mantissa_bits);
}

// Empty if `got` equals `want`; else one line that names the first difference. Weak types are compared.
inline std::optional<std::string> difference(const Array& got, const ExpectedArray& want,
                                             std::optional<Tolerance> given = std::nullopt) {
  ArrayType type;
  type.shape = want.shape;
  type.dtype = want.dtype;
  type.weak_type = want.weak_type;
  if (got.dtype() != want.dtype || got.shape() != want.shape || got.weak_type() != want.weak_type) {
    return concat("got ", to_string(got.type()), got.weak_type() ? " weak" : "", ", expected ", to_string(type),
                  want.weak_type ? " weak" : "");
  }
  if (want.bytes.empty() || want.dtype == DType::float0) return std::nullopt;
  if (std::memcmp(got.raw_data(), want.bytes.data(), want.bytes.size()) == 0) return std::nullopt;
  if (!is_inexact(want.dtype)) {
    std::size_t width = static_cast<std::size_t>(storage_size(want.dtype));
    std::size_t at = 0;
    while (std::memcmp(got.raw_data() + at * width, want.bytes.data() + at * width, width) == 0) ++at;
    return concat("element ", at, " of ", to_string(type), " differs");
  }
  Tolerance tolerance = given ? *given : Tolerance::of_dtype(want.dtype);
  std::vector<std::complex<double>> a = got.to_vector<std::complex<double>>();
  std::vector<std::complex<double>> b =
      Array::from_host(want.dtype, want.shape, want.bytes.data()).to_vector<std::complex<double>>();
  auto near = [&](double x, double y, double scale) {
    if (x == y || (std::isnan(x) && std::isnan(y))) return true;
    if (!std::isfinite(x) || !std::isfinite(y)) return false;
    if (tolerance.ulps >= 0) return std::abs(x - y) <= tolerance.ulps * spacing(want.dtype, y);
    return std::abs(x - y) <= tolerance.absolute + tolerance.relative * scale;
  };
  std::size_t bad = 0, first = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    double scale = std::abs(b[i]);
    if (near(a[i].real(), b[i].real(), scale) && near(a[i].imag(), b[i].imag(), scale)) continue;
    if (bad++ == 0) first = i;
  }
  if (bad == 0) return std::nullopt;
  std::ostringstream message;
  message.precision(9);
  message << bad << " of " << a.size() << " elements of " << to_string(type) << " differ, first at flat index " << first
          << ": got " << a[first] << ", expected " << b[first];
  return message.str();
}

}  // namespace capibara::oracle
