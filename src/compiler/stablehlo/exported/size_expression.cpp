// Evaluates expressions of sizes by recursive descent.
#include "compiler/stablehlo/exported/size_expression.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include <capibara/error.h>

namespace capibara::stablehlo {

namespace {

constexpr int depth_limit = 64;

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

class Evaluation {
 public:
  Evaluation(const std::string& text, const std::map<std::string, std::int64_t>& sizes) : text_(text), sizes_(sizes) {}

  std::int64_t run() {
    const std::int64_t value = sum();
    if (at_ != text_.size()) fail("expected an operator");
    if (value < 0) fail(concat("it is ", value, ", which is not a size"));
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw ValueError(concat("symbolic size '", text_, "', position ", at_, ": ", what));
  }

  bool take(char c) {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void require(char c) {
    if (!take(c)) fail(concat("expected '", c, "'"));
  }

  std::int64_t times(std::int64_t a, std::int64_t b) const {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product)) fail("the value exceeds 64 bits");
    return product;
  }
  std::int64_t plus(std::int64_t a, std::int64_t b) const {
    std::int64_t total = 0;
    if (__builtin_add_overflow(a, b, &total)) fail("the value exceeds 64 bits");
    return total;
  }

  std::int64_t sum() {
    std::int64_t value = product();
    while (true) {
      if (take('+'))
        value = plus(value, product());
      else if (take('-'))
        value = plus(value, times(-1, product()));
      else
        return value;
    }
  }

  std::int64_t product() {
    std::int64_t value = power();
    while (take('*')) value = times(value, power());
    return value;
  }

  std::int64_t power() {
    const std::int64_t base = atom();
    if (!take('^')) return base;
    const std::int64_t count = atom();
    if (count < 0 || count > 63) fail("expected a power between 0 and 63");
    std::int64_t value = 1;
    for (std::int64_t i = 0; i < count; ++i) value = times(value, base);
    return value;
  }

  std::int64_t atom() {
    if (++depth_ > depth_limit) fail("it is nested too deeply");
    const std::int64_t value = take('-') ? times(-1, product()) : take('(') ? in_parentheses() : word();
    --depth_;
    return value;
  }

  std::int64_t in_parentheses() {
    const std::int64_t value = sum();
    require(')');
    return value;
  }

  std::int64_t word() {
    const std::size_t begin = at_;
    const auto is_part = [&](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    while (at_ < text_.size() && is_part(text_[at_])) ++at_;
    const std::string name = text_.substr(begin, at_ - begin);
    if (name.empty()) fail("expected a number or a name");
    if (name[0] >= '0' && name[0] <= '9') {
      std::int64_t value = 0;
      const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
      if (error != std::errc{} || end != name.data() + name.size()) fail("expected a number");
      return value;
    }
    if (take('(')) return call(name);
    const auto found = sizes_.find(name);
    if (found == sizes_.end()) fail(concat("there is no value for '", name, "'"));
    return found->second;
  }

  std::int64_t call(const std::string& name) {
    const std::int64_t a = sum();
    require(',');
    const std::int64_t b = sum();
    require(')');
    if (name == "max") return std::max(a, b);
    if (name == "min") return std::min(a, b);
    if (name != "floordiv" && name != "mod") fail(concat("there is no function '", name, "'"));
    if (b == 0) fail("a division by zero");
    const std::int64_t quotient = floor_divide(a, b);
    return name == "floordiv" ? quotient : plus(a, times(-1, times(quotient, b)));
  }

  const std::string& text_;
  const std::map<std::string, std::int64_t>& sizes_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::int64_t size_of(const std::string& expression, const std::map<std::string, std::int64_t>& sizes) {
  return Evaluation(expression, sizes).run();
}

}  // namespace capibara::stablehlo
