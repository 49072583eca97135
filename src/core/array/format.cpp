// NumPy's array layout: one width and notation for all elements shown, wrapped lines, summarised middles.
#include "core/array/format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <complex>
#include <cstdio>
#include <vector>

#include "core/array/element.h"

namespace capibara {
namespace {

// A finite number as d.ddd x 10^exponent.
struct Decimal {
  bool negative = false;
  std::string digits;
  int exponent = 0;
};

Decimal parse_scientific(std::string_view text) {
  Decimal decimal;
  if (text.front() == '-') {
    decimal.negative = true;
    text.remove_prefix(1);
  }
  const std::size_t mark = text.find('e');
  for (char c : text.substr(0, mark)) {
    if (c != '.') decimal.digits += c;
  }
  std::string_view exponent = text.substr(mark + 1);
  if (exponent.front() == '+') exponent.remove_prefix(1);
  std::from_chars(exponent.data(), exponent.data() + exponent.size(), decimal.exponent);
  while (decimal.digits.size() > 1 && decimal.digits.back() == '0') decimal.digits.pop_back();
  return decimal;
}

template <class... Precision>
Decimal to_decimal(auto value, Precision... fraction_digits) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific, fraction_digits...);
  return parse_scientific({text, static_cast<std::size_t>(end.ptr - text)});
}

// The fewest digits that distinguish `value`, exactly an element of `dtype`, from its neighbours in that dtype.
Decimal shortest(DType dtype, double value) {
  if (dtype == DType::float64) return to_decimal(value);
  if (dtype != DType::float16) return to_decimal(static_cast<float>(value));
  for (int fraction_digits = 0;; ++fraction_digits) {
    char text[64];
    const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific, fraction_digits);
    double read = 0;
    std::from_chars(text, end.ptr, read);
    if (Half(read).bits == Half(value).bits || fraction_digits == 8) {
      return parse_scientific({text, static_cast<std::size_t>(end.ptr - text)});
    }
  }
}

// The decimal written without exponent, "12." or "0.5": a point always, no trailing zeros.
std::string positional_text(const Decimal& decimal) {
  std::string text = decimal.negative ? "-" : "";
  const int length = static_cast<int>(decimal.digits.size());
  if (decimal.exponent < 0) {
    text += "0." + std::string(static_cast<std::size_t>(-decimal.exponent - 1), '0') + decimal.digits;
  } else if (decimal.exponent + 1 >= length) {
    text += decimal.digits + std::string(static_cast<std::size_t>(decimal.exponent + 1 - length), '0') + ".";
  } else {
    const std::size_t whole = static_cast<std::size_t>(decimal.exponent + 1);
    text += decimal.digits.substr(0, whole) + "." + decimal.digits.substr(whole);
  }
  return text;
}

std::string exponent_text(int exponent, std::size_t width) {
  std::string digits = std::to_string(exponent < 0 ? -exponent : exponent);
  if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
  return (exponent < 0 ? "-" : "+") + digits;
}

std::string padded_left(const std::string& text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

// Formats the real numbers of an array uniformly, after a first pass over all of them.
class RealFormat {
 public:
  RealFormat(DType dtype, const std::vector<double>& values, int precision, bool always_sign)
      : dtype_(dtype), precision_(precision), always_sign_(always_sign) {
    choose_notation(values);
    bool any_finite = false;
    bool all_finite = true;
    bool negative_infinity = false;
    for (double value : values) {
      if (!std::isfinite(value)) {
        all_finite = false;
        negative_infinity |= value < 0;
        continue;
      }
      any_finite = true;
      measure(value);
    }
    if (exponential_ && any_finite) right_ = exponent_width_ + 2 + fraction_width_;
    if (!all_finite) {
      const std::size_t longest = 3 + ((always_sign_ || negative_infinity) ? 1 : 0);
      if (longest > right_ + 1) left_ = std::max(left_, longest - right_ - 1);
    }
  }

  std::string operator()(double value) const {
    if (!std::isfinite(value)) {
      std::string text = std::isnan(value) ? "nan" : "inf";
      if (value < 0)
        text = "-" + text;
      else if (always_sign_)
        text = "+" + text;
      return padded_left(text, left_ + right_ + 1);
    }
    if (exponential_) {
      // Elements with few digits are padded with more of their exact digits, not with zeros.
      Decimal decimal = scientific(value);
      if (decimal.digits.size() - 1 < fraction_width_) decimal = to_decimal(value, static_cast<int>(fraction_width_));
      std::string fraction = decimal.digits.substr(1);
      fraction.resize(fraction_width_, '0');
      return padded_left(sign(decimal.negative) + decimal.digits.substr(0, 1), left_) + "." + fraction + "e" +
             exponent_text(decimal.exponent, exponent_width_);
    }
    std::string text = positional(value);
    const std::size_t point = text.find('.');
    const std::size_t fraction = text.size() - point - 1;
    text = padded_left(text, left_ + 1 + fraction);
    return text + std::string(right_ - fraction, ' ');
  }

 private:
  std::string sign(bool negative) const { return negative ? "-" : (always_sign_ ? "+" : ""); }

  // Exponents are used where positional digits would be too long or lose too much.
  void choose_notation(const std::vector<double>& values) {
    double greatest = 0;
    double least = 0;
    for (double value : values) {
      const double magnitude = std::abs(value);
      if (!std::isfinite(value) || magnitude == 0) continue;
      greatest = std::max(greatest, magnitude);
      least = least == 0 ? magnitude : std::min(least, magnitude);
    }
    if (greatest == 0) return;
    const double cutoff = std::pow(10.0, std::min(8, finfo(dtype_).precision));
    // Both limits are compared in the array's own precision: float32's 0.0001 is not below 0.0001.
    exponential_ = greatest >= cutoff || least < nearest(0.0001) || nearest(greatest / least) > 1000;
  }

  double nearest(double value) const {
    if (dtype_ == DType::float16) return static_cast<double>(Half(value));
    return dtype_ == DType::float32 ? static_cast<double>(static_cast<float>(value)) : value;
  }

  Decimal scientific(double value) const {
    Decimal decimal = shortest(dtype_, value);
    if (static_cast<int>(decimal.digits.size()) - 1 > precision_) decimal = to_decimal(value, precision_);
    return decimal;
  }

  std::string positional(double value) const {
    const Decimal decimal = shortest(dtype_, value);
    std::string text = positional_text(decimal);
    if (static_cast<int>(text.size() - text.find('.')) - 1 > precision_) {
      char cut[400];
      const auto end = std::to_chars(cut, cut + sizeof cut, value, std::chars_format::fixed, precision_);
      text.assign(cut, end.ptr);
      if (precision_ == 0) text += '.';
      while (text.back() == '0') text.pop_back();
    }
    return always_sign_ && !decimal.negative ? "+" + text : text;
  }

  void measure(double value) {
    if (exponential_) {
      const Decimal decimal = scientific(value);
      left_ = std::max(left_, sign(decimal.negative).size() + 1);
      fraction_width_ = std::max(fraction_width_, decimal.digits.size() - 1);
      exponent_width_ = std::max(exponent_width_, exponent_text(decimal.exponent, 2).size() - 1);
      return;
    }
    const std::string text = positional(value);
    const std::size_t point = text.find('.');
    left_ = std::max(left_, point);
    right_ = std::max(right_, text.size() - point - 1);
  }

  DType dtype_;
  int precision_;
  bool always_sign_;
  bool exponential_ = false;
  std::size_t left_ = 0;            // columns before the point
  std::size_t right_ = 0;           // columns after it
  std::size_t fraction_width_ = 0;  // digits after the point, where exponents are used
  std::size_t exponent_width_ = 0;
};

// ml_dtypes elements are printed individually, with at most six digits.
std::string six_digits(double value) {
  if (std::isnan(value)) return "nan";
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

bool has_numpy_format(DType dtype) {
  return dtype == DType::float16 || dtype == DType::float32 || dtype == DType::float64;
}

std::string integer_text(DType dtype, const void* data, std::int64_t index) {
  if (is_unsigned(dtype)) return std::to_string(load_as<std::uint64_t>(dtype, data, index));
  return std::to_string(load_as<std::int64_t>(dtype, data, index));
}

// The texts of the elements at `offsets`, all of one layout.
std::vector<std::string> element_texts(DType dtype, const void* data, const std::vector<std::int64_t>& offsets,
                                       bool is_scalar, int precision) {
  std::vector<std::string> texts;
  texts.reserve(offsets.size());
  if (dtype == DType::float0) return std::vector<std::string>(offsets.size(), "(b'',)");
  if (is_bool(dtype)) {
    for (std::int64_t offset : offsets) {
      texts.emplace_back(load_as<bool>(dtype, data, offset) ? (is_scalar ? "True" : " True") : "False");
    }
    return texts;
  }
  if (is_integer(dtype)) {
    std::size_t width = 0;
    for (std::int64_t offset : offsets) {
      texts.push_back(integer_text(dtype, data, offset));
      if (!is_sub_byte(dtype)) width = std::max(width, texts.back().size());
    }
    for (std::string& text : texts) text = padded_left(text, width);
    return texts;
  }
  if (is_floating(dtype) && !has_numpy_format(dtype)) {
    for (std::int64_t offset : offsets) texts.push_back(six_digits(element_as_double(dtype, data, offset)));
    return texts;
  }
  std::vector<double> real;
  std::vector<double> imaginary;
  for (std::int64_t offset : offsets) {
    const auto value = load_as<std::complex<double>>(dtype, data, offset);
    real.push_back(value.real());
    imaginary.push_back(value.imag());
  }
  const DType part = real_dtype(dtype);
  const RealFormat format_real(part, real, precision, false);
  for (double value : real) texts.push_back(format_real(value));
  if (is_complex(dtype)) {
    const RealFormat format_imaginary(part, imaginary, precision, true);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      std::string text = format_imaginary(imaginary[i]);
      text.insert(text.find_last_not_of(' ') + 1, "j");
      texts[i] += text;
    }
  }
  return texts;
}

// Lays out the elements' texts in nested brackets.
class Layout {
 public:
  Layout(DType dtype, std::span<const std::int64_t> shape, const void* data, const FormatOptions& options)
      : shape_(shape), options_(options) {
    std::int64_t size = 1;
    for (std::int64_t length : shape) size *= length;
    summarise_ = size > options.threshold;
    std::vector<std::int64_t> offsets;
    collect(0, 0, offsets);
    texts_ = element_texts(dtype, data, offsets, shape.empty(), options.precision);
    separator_ = std::string(options.separator);
    bare_separator_ = separator_.substr(0, separator_.find_last_not_of(' ') + 1);
  }

  std::string text() {
    const std::string indent(static_cast<std::size_t>(options_.prefix_width + 1), ' ');
    return nested(0, indent, options_.linewidth - options_.suffix_width);
  }

 private:
  bool cut(std::size_t axis) const { return summarise_ && 2 * options_.edgeitems < shape_[axis]; }

  // Indices shown along an axis; -1 marks the gap.
  std::vector<std::int64_t> shown(std::size_t axis) const {
    std::vector<std::int64_t> indices;
    for (std::int64_t i = 0; i < shape_[axis]; ++i) {
      if (cut(axis) && i == options_.edgeitems) {
        indices.push_back(-1);
        i = shape_[axis] - options_.edgeitems;
        if (i == shape_[axis]) break;
      }
      indices.push_back(i);
    }
    return indices;
  }

  void collect(std::size_t axis, std::int64_t offset, std::vector<std::int64_t>& offsets) const {
    if (axis == shape_.size()) {
      offsets.push_back(offset);
      return;
    }
    for (std::int64_t index : shown(axis)) {
      if (index >= 0) collect(axis + 1, offset * shape_[axis] + index, offsets);
    }
  }

  std::string nested(std::size_t axis, const std::string& indent, std::int64_t width) {
    if (axis == shape_.size()) return texts_[next_text_++];
    const std::vector<std::int64_t> indices = shown(axis);
    const std::size_t axes_left = shape_.size() - axis;
    std::string body;
    if (axes_left == 1) {
      const std::int64_t word_limit =
          width - std::max<std::int64_t>(static_cast<std::int64_t>(bare_separator_.size()), 1);
      std::string line = indent;
      for (std::size_t i = 0; i < indices.size(); ++i) {
        const std::string word = indices[i] < 0 ? "..." : texts_[next_text_++];
        if (static_cast<std::int64_t>(line.size() + word.size()) > word_limit && line.size() > indent.size()) {
          body += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
          line = indent;
        }
        line += word;
        if (i + 1 < indices.size()) line += separator_;
      }
      body += line;
    } else {
      const std::string line_end = bare_separator_ + std::string(axes_left - 1, '\n');
      for (std::size_t i = 0; i < indices.size(); ++i) {
        body += indent + (indices[i] < 0 ? "..." : nested(axis + 1, indent + " ", width - 1));
        if (i + 1 < indices.size()) body += line_end;
      }
    }
    return "[" + body.substr(indent.size()) + "]";
  }

  std::span<const std::int64_t> shape_;
  const FormatOptions& options_;
  bool summarise_ = false;
  std::string separator_;
  std::string bare_separator_;
  std::vector<std::string> texts_;
  std::size_t next_text_ = 0;
};

bool is_empty(std::span<const std::int64_t> shape) { return std::find(shape.begin(), shape.end(), 0) != shape.end(); }

// A float as Python and NumPy spell scalars: the shortest digits of the dtype `digits_of`, exponents
// for magnitudes beyond its precision. `point_zero` keeps ".0" on whole numbers.
std::string python_real(DType digits_of, double value, bool point_zero) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  const double limit = digits_of == DType::float64 ? 1e16 : digits_of == DType::float32 ? 1e6 : 1e3;
  const double magnitude = std::abs(value);
  const Decimal decimal = shortest(digits_of, value);
  if (magnitude == 0 || (magnitude >= 1e-4 && magnitude < limit)) {
    std::string text = positional_text(decimal);
    if (text.back() == '.') {
      if (point_zero)
        text += '0';
      else
        text.pop_back();
    }
    return text;
  }
  std::string text = decimal.negative ? "-" : "";
  text += decimal.digits[0];
  if (decimal.digits.size() > 1) text += "." + decimal.digits.substr(1);
  return text + "e" + exponent_text(decimal.exponent, 2);
}

std::string python_complex(DType digits_of, std::complex<double> value) {
  std::string imaginary = python_real(digits_of, value.imag(), false) + "j";
  if (value.real() == 0 && !std::signbit(value.real())) return imaginary;
  if (imaginary[0] != '-') imaginary = "+" + imaginary;
  return "(" + python_real(digits_of, value.real(), false) + imaginary + ")";
}

// Text of one element, with digits enough for `digits_of` in inexact dtypes.
std::string scalar_text(DType dtype, const void* data, DType digits_of) {
  if (is_key(dtype)) return format_array(dtype, {}, data);
  if (dtype == DType::float0) return "(b'',)";
  if (is_bool(dtype)) return load_as<bool>(dtype, data, 0) ? "True" : "False";
  if (is_integer(dtype)) return integer_text(dtype, data, 0);
  if (is_complex(dtype)) return python_complex(digits_of, load_as<std::complex<double>>(dtype, data, 0));
  return python_real(digits_of, element_as_double(dtype, data, 0), true);
}

}  // namespace

std::string python_float(double value) { return python_real(DType::float64, value, true); }

std::string shape_tuple(std::span<const std::int64_t> shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

std::string format_array(DType dtype, std::span<const std::int64_t> shape, const void* data,
                         const FormatOptions& options) {
  if (is_key(dtype)) {
    std::vector<std::int64_t> words(shape.begin(), shape.end());
    words.push_back(key_words(dtype));
    return format_array(DType::uint32, words, data, options);
  }
  if (is_empty(shape)) return "[]";
  return Layout(dtype, shape, data, options).text();
}

std::string array_repr(DType dtype, std::span<const std::int64_t> shape, const void* data, bool weak_type) {
  const std::string type = "dtype=" + to_string(dtype) + (weak_type ? ", weak_type=True" : "");
  if (is_key(dtype))
    return "Array(" + shape_tuple(shape) + ", " + type + ") overlaying:\n" + format_array(dtype, shape, data);
  const FormatOptions options{.prefix_width = 6, .suffix_width = 1, .separator = ", "};
  const std::string text =
      is_empty(shape) ? "[], shape=" + shape_tuple(shape) : format_array(dtype, shape, data, options);
  const std::size_t line_start = text.rfind('\n');
  const std::size_t last_line = line_start == std::string::npos ? text.size() + 2 : text.size() - line_start + 1;
  const bool crowded = static_cast<std::int64_t>(last_line + type.size() + 2) > options.linewidth;
  return "Array(" + text + "," + std::string(crowded ? 6 : 1, ' ') + type + ")";
}

std::string array_str(DType dtype, std::span<const std::int64_t> shape, const void* data) {
  if (is_key(dtype)) return array_repr(dtype, shape, data);
  if (!shape.empty()) return format_array(dtype, shape, data);
  if (is_floating(dtype) && !has_numpy_format(dtype)) return six_digits(element_as_double(dtype, data, 0));
  return scalar_text(dtype, data, is_inexact(dtype) ? real_dtype(dtype) : dtype);
}

std::string format_scalar(DType dtype, const void* data) { return scalar_text(dtype, data, DType::float64); }

}  // namespace capibara
