// Decodes the literal of dense<...> into the bytes of an array.
#include "compiler/stablehlo/syntax/dense.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include <capibara/error.h>

namespace capibara::stablehlo {
namespace {

// `index` is the element type of layouts; it has no dtype of its own and is kept as 64-bit integers.
constexpr DTypeRow index_row{DType::int64, "index", "index", "index", Kind::signed_integer, 64, 8, 0, 0};

const DTypeRow* find_row(const std::string& element) {
  if (element == "index") return &index_row;
  for (const DTypeRow& row : dtype_table)
    if (row.stablehlo == element && row.kind != Kind::token) return &row;
  return nullptr;
}

}  // namespace

const SmallFormat* find_small_format(DType dtype) {
  // A literal is rounded to bfloat16 once, from double, as in MLIR.
  static constexpr SmallFormat bfloat16{16, 8, 7, 127, Specials::ieee};
  switch (dtype) {
    case DType::float4_e2m1fn:
      return &Float4E2M1FN::format;
    case DType::float6_e2m3fn:
      return &Float6E2M3FN::format;
    case DType::float6_e3m2fn:
      return &Float6E3M2FN::format;
    case DType::float8_e3m4:
      return &Float8E3M4::format;
    case DType::float8_e4m3:
      return &Float8E4M3::format;
    case DType::float8_e4m3b11fnuz:
      return &Float8E4M3B11FNUZ::format;
    case DType::float8_e4m3fn:
      return &Float8E4M3FN::format;
    case DType::float8_e4m3fnuz:
      return &Float8E4M3FNUZ::format;
    case DType::float8_e5m2:
      return &Float8E5M2::format;
    case DType::float8_e5m2fnuz:
      return &Float8E5M2FNUZ::format;
    case DType::float8_e8m0fnu:
      return &Float8E8M0FNU::format;
    case DType::bfloat16:
      return &bfloat16;
    case DType::float16:
      return &Half::format;
    default:
      return nullptr;
  }
}

namespace {

class DenseDecoder {
 public:
  DenseDecoder(const Lexer& lexer, std::size_t begin, std::size_t end, const Type& type, const DTypeRow& row)
      : lexer_(lexer), text_(lexer.text().substr(0, end)), at_(begin), type_(type), row_(row) {}

  DenseElements decode() {
    skip_space();
    const std::int64_t count = type_.element_count();
    const bool is_empty = at_ == text_.size();
    if (is_empty) {
      if (count != 0) fail("expected an element, got an empty literal for " + type_.text());
    } else if (text_[at_] == '"') {
      decode_hexadecimal(count);
    } else if (text_[at_] == '[') {
      if (type_.dims().empty()) fail("expected one element for " + type_.text() + ", got a list");
      decode_list(0);
    } else {
      decode_element();
      if (count == 0) bytes_.clear();
    }
    skip_space();
    if (at_ != text_.size()) fail("expected '>' after the elements");
    return make_dense(type_, std::move(bytes_), row_.storage_bytes);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { lexer_.fail(at_, message); }

  void skip_space() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '/') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else {
        break;
      }
    }
  }

  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void decode_list(std::size_t dimension) {
    const std::size_t begin = at_;
    if (!take('[')) fail(concat("expected '[' for dimension ", dimension, " of ", type_.text()));
    const std::int64_t size = type_.dims()[dimension];
    const bool is_innermost = dimension + 1 == type_.dims().size();
    std::int64_t count = 0;
    if (!take(']')) {
      do {
        skip_space();
        if (is_innermost) {
          decode_element();
        } else {
          decode_list(dimension + 1);
        }
        ++count;
      } while (take(','));
      if (!take(']')) fail("expected ',' or ']' in a list of elements");
    }
    if (count != size) {
      at_ = begin;
      fail(concat("expected ", size, " elements in dimension ", dimension, " of ", type_.text(), ", got ", count));
    }
  }

  void decode_element() {
    if (row_.kind != Kind::complex) return decode_scalar();
    if (!take('(')) fail("expected a complex number (re, im)");
    decode_scalar();
    if (!take(',')) fail("expected ',' between the parts of a complex number");
    decode_scalar();
    if (!take(')')) fail("expected ')' after a complex number");
  }

  void decode_scalar() {
    skip_space();
    if (row_.kind == Kind::boolean) return decode_bool();
    if (row_.kind == Kind::floating || row_.kind == Kind::complex) return decode_float();
    decode_integer();
  }

  bool take_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  void decode_bool() {
    if (take_word("true")) return put(1, 1);
    if (take_word("false")) return put(0, 1);
    bool negative = false;
    const std::uint64_t magnitude = read_magnitude(negative);
    if (magnitude > 1) fail("expected true, false, 0 or 1 for i1");
    put(magnitude, 1);
  }

  // An integer literal, decimal or hexadecimal.
  std::uint64_t read_magnitude(bool& negative) {
    negative = at_ < text_.size() && text_[at_] == '-';
    if (negative) ++at_;
    const bool hexadecimal = text_.substr(at_, 2) == "0x";
    if (hexadecimal) at_ += 2;
    std::uint64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value, hexadecimal ? 16 : 10);
    if (error == std::errc::invalid_argument) fail(concat("expected an element of type ", row_.stablehlo));
    if (error != std::errc()) fail(concat("expected a number that fits ", row_.stablehlo));
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  void decode_integer() {
    const std::size_t begin = at_;
    bool negative = false;
    std::uint64_t value = read_magnitude(negative);
    const std::uint64_t sign_bit = std::uint64_t{1} << (row_.bits - 1);
    const std::uint64_t largest = sign_bit | (sign_bit - 1);
    // A signless type accepts both 255 and -1 for i8, as in MLIR.
    const bool fits =
        negative ? (row_.kind == Kind::signed_integer ? value <= sign_bit : value == 0) : value <= largest;
    if (!fits) {
      at_ = begin;
      fail(concat("expected a number that fits ", row_.stablehlo));
    }
    if (negative) value = 0 - value;
    put(extend_sign(value), row_.storage_bytes);
  }

  std::uint64_t extend_sign(std::uint64_t value) const {
    if (row_.kind != Kind::signed_integer) return value;
    const int unused = 64 - row_.bits;
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value << unused) >> unused);
  }

  void decode_float() {
    const bool is_part = row_.kind == Kind::complex;
    const int bits = is_part ? row_.bits / 2 : row_.bits;
    const int width = is_part ? row_.storage_bytes / 2 : row_.storage_bytes;
    if (text_.substr(at_, 2) == "0x") {
      bool negative = false;
      const std::uint64_t pattern = read_magnitude(negative);
      if (bits < 64 && pattern >> bits) fail(concat("expected at most ", bits, " bits for ", row_.stablehlo));
      return put(pattern, width);
    }
    const double value = read_double();
    if (bits == 64) return put(std::bit_cast<std::uint64_t>(value), width);
    if (bits == 32) return put(std::bit_cast<std::uint32_t>(static_cast<float>(value)), width);
    put(encode_small_float(*find_small_format(row_.dtype), value), width);
  }

  double read_double() {
    double value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    const bool is_number = end > begin && (*begin == '-' ? end > begin + 1 && begin[1] <= '9' : *begin <= '9');
    if (error == std::errc::invalid_argument || !is_number)
      fail(concat("expected an element of type ", row_.stablehlo));
    if (error == std::errc::result_out_of_range) {
      // Underflow gives zero; overflow is an error, since infinity is written in hexadecimal.
      value = std::strtod(std::string(begin, end).c_str(), nullptr);
      if (std::isinf(value)) fail("expected a number within the range of f64");
    }
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  void put(std::uint64_t value, int width) {
    for (int i = 0; i < width; ++i) bytes_.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  }

  void decode_hexadecimal(std::int64_t count) {
    const std::size_t begin = at_;
    const std::size_t close = text_.find('"', at_ + 1);
    if (close == std::string_view::npos || text_.substr(at_ + 1, 2) != "0x")
      fail("expected a string of the form \"0x...\"");
    const std::string_view digits = text_.substr(at_ + 3, close - at_ - 3);
    if (digits.size() % 2) fail("expected an even number of hexadecimal digits");
    bytes_.resize(digits.size() / 2);
    unsigned invalid = 0;
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      const unsigned high = nibble(digits[2 * i]);
      const unsigned low = nibble(digits[2 * i + 1]);
      invalid |= (high | low) & 0xF0u;
      bytes_[i] = static_cast<std::uint8_t>(high << 4 | low);
    }
    if (invalid) fail("expected only hexadecimal digits in the string");
    at_ = close + 1;
    shape_bytes(begin, count);
    normalize_bytes();
  }

  static unsigned nibble(char c) {
    if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? static_cast<unsigned>(lower - 'a' + 10) : 0xFFu;
  }

  // Determines if the bytes are a splat, whole elements, or the bits into which older texts pack i1.
  void shape_bytes(std::size_t begin, std::int64_t count) {
    const auto size = static_cast<std::int64_t>(bytes_.size());
    const std::int64_t width = row_.storage_bytes;
    if (size % width == 0 && size / width == count) return;
    if (size == width && count > 1) return;  // a splat
    if (row_.kind == Kind::boolean && size == count / 8 + (count % 8 != 0)) {
      std::vector<std::uint8_t> packed = std::move(bytes_);
      bytes_.resize(static_cast<std::size_t>(count));
      for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = (packed[i / 8] >> (i % 8)) & 1;
      return;
    }
    at_ = begin;
    fail(concat("expected ", count, " elements of ", width, " bytes for ", type_.text(), ", got ", size, " bytes"));
  }

  void normalize_bytes() {
    if (row_.kind == Kind::boolean) {
      for (std::uint8_t& byte : bytes_) byte = byte != 0;
    } else if (row_.bits < 8) {
      const auto mask = static_cast<std::uint8_t>((1u << row_.bits) - 1);
      for (std::uint8_t& byte : bytes_) byte = static_cast<std::uint8_t>(extend_sign(byte & mask));
    }
  }

  const Lexer& lexer_;
  std::string_view text_;
  std::size_t at_;
  const Type& type_;
  const DTypeRow& row_;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace

DenseElements make_dense(const Type& type, std::vector<std::uint8_t> bytes, std::size_t width) {
  DenseElements dense;
  dense.type = type;
  // Bytes that are unchanged when shifted by one element are one element repeated.
  dense.splat = type.element_count() > 1 && std::memcmp(bytes.data(), bytes.data() + width, bytes.size() - width) == 0;
  if (dense.splat) {
    bytes.resize(width);
    bytes.shrink_to_fit();
  }
  dense.bytes = std::make_shared<const std::vector<std::uint8_t>>(std::move(bytes));
  return dense;
}

DenseElements decode_dense(const Lexer& lexer, std::size_t begin, std::size_t end, const Type& type) {
  if (!type.has_static_shape()) {
    lexer.fail(begin, "dense: expected a tensor type of static shape, got " + type.text());
  }
  const DTypeRow* row = find_row(type.element());
  if (!row) lexer.fail(begin, "dense: expected an element type of capibara, got " + type.element());
  return DenseDecoder(lexer, begin, end, type, *row).decode();
}

}  // namespace capibara::stablehlo
