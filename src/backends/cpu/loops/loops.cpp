// Prints the loop form: one statement per line, inner blocks indented; for people and for `capibara show --loops`.
// Different modules have different texts: constants are exact, and everything that affects the code is printed.
#include "backends/cpu/loops/loops.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdio>
#include <iterator>
#include <string_view>

namespace capibara::cpu {

namespace {

constexpr const char* scalar_names[] = {"i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"};
constexpr const char* op_names[] = {"constant",
                                    "add",
                                    "sub",
                                    "mul",
                                    "neg",
                                    "div",
                                    "fma",
                                    "sqrt",
                                    "abs",
                                    "floor",
                                    "ceil",
                                    "truncate",
                                    "round_even",
                                    "copysign",
                                    "minimum",
                                    "maximum",
                                    "bit_and",
                                    "bit_or",
                                    "bit_xor",
                                    "shift_left",
                                    "shift_right_logical",
                                    "shift_right_arithmetic",
                                    "divide_signed",
                                    "divide_unsigned",
                                    "remainder_signed",
                                    "remainder_unsigned",
                                    "leading_zeros",
                                    "population_count",
                                    "eq",
                                    "ne",
                                    "lt",
                                    "le",
                                    "gt",
                                    "ge",
                                    "lt_unsigned",
                                    "le_unsigned",
                                    "gt_unsigned",
                                    "ge_unsigned",
                                    "select",
                                    "sign_extend",
                                    "zero_extend",
                                    "narrow",
                                    "signed_to_float",
                                    "unsigned_to_float",
                                    "float_to_signed",
                                    "float_to_unsigned",
                                    "float_convert",
                                    "bitcast",
                                    "call",
                                    "apply"};
static_assert(std::size(op_names) == static_cast<std::size_t>(Op::apply) + 1);
constexpr const char* math_names[] = {
    "sin",  "cos", "tan",  "asin", "acos",  "atan", "atan2", "sinh", "cosh", "asinh",  "acosh",     "atanh", "pow",
    "cbrt", "erf", "erfc", "log",  "log1p", "exp",  "expm1", "tanh", "fmod", "lgamma", "nextafter", "round"};
static_assert(std::size(math_names) == static_cast<std::size_t>(Math::round) + 1);

std::string name_of(Value value) { return "%" + std::to_string(value); }

std::string number(double value, int digits) {
  char text[40];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

std::string hexadecimal(uint64_t bits) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(bits));
  return text;
}

std::string constant_text(Scalar type, uint64_t bits) {
  switch (type) {
    case Scalar::f32: {
      float value = std::bit_cast<float>(static_cast<uint32_t>(bits));
      return std::isnan(value) ? hexadecimal(bits) : number(value, 9);
    }
    case Scalar::f64: {
      double value = std::bit_cast<double>(bits);
      return std::isnan(value) ? hexadecimal(bits) : number(value, 17);
    }
    case Scalar::f16:
    case Scalar::bf16:
      return hexadecimal(bits);
    case Scalar::i1:
      return bits ? "true" : "false";
    default: {
      int unused = 64 - 8 * byte_size(type);
      return std::to_string(static_cast<int64_t>(bits << unused) >> unused);
    }
  }
}

class Printer {
 public:
  explicit Printer(const Function& function) : function_(function) {}

  std::string run() {
    text_ = function_.name;
    if (function_.parallel) {
      text_ +=
          " parallel over " + std::to_string(function_.extent) + ", " + number(function_.cost, 9) + " ns an iteration";
    }
    text_ += " {\n";
    depth_ = 1;
    for (std::size_t i = 0; i < function_.buffers.size(); ++i) {
      const BufferInfo& buffer = function_.buffers[i];
      line(std::string(buffer.local ? "local" : "parameter") + " b" + std::to_string(i) + ": " +
           std::to_string(buffer.bytes) + " bytes" + (buffer.written && !buffer.local ? ", written" : ""));
    }
    depth_ = 0;
    print(function_.body);
    text_ += "}\n";
    for (std::size_t i = 0; i < function_.formulas.size(); ++i) {
      const Formula& formula = function_.formulas[i];
      const bool product = formula.factor_a != no_value;
      text_ += "formula " + std::to_string(i) +
               (product ? " ends in " + name_of(formula.factor_a) + " * " + name_of(formula.factor_b) : "") + ": " +
               to_string(*formula.body);
    }
    return std::move(text_);
  }

 private:
  // Parts of a line are written directly to the output: every region is printed to find its duplicates.
  struct Typed {
    Value value;
  };
  void put(std::string_view text) { text_ += text; }
  void put(std::integral auto value) {
    char digits[24];
    text_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  }
  void put_name(Value value) {
    text_ += '%';
    put(static_cast<int64_t>(value));
  }
  void put(Typed typed) {
    put_name(typed.value);
    text_ += ": ";
    text_ += scalar_names[static_cast<int>(function_.types[static_cast<std::size_t>(typed.value)])];
  }
  void put(const Address& address) {
    text_ += 'b';
    put(address.buffer);
    text_ += '[';
    for (const Term& term : address.terms) {
      if (&term != address.terms.data()) text_ += " + ";
      if (term.factor != 1) {
        put(term.factor);
        text_ += '*';
      }
      put_name(term.index);
    }
    if (address.offset != 0 || address.terms.empty()) {
      if (!address.terms.empty()) text_ += " + ";
      put(address.offset);
    }
    text_ += ']';
    if (address.ahead != 0) {
      text_ += " ahead ";
      put(address.ahead);
    }
  }
  void put(const std::vector<Argument>& arguments) {
    text_ += '(';
    for (const Argument& argument : arguments) {
      if (&argument != arguments.data()) text_ += ", ";
      put(argument.address);
    }
    text_ += ')';
  }

  template <class... Pieces>
  void line(const Pieces&... pieces) {
    text_.append(static_cast<std::size_t>(2 * depth_), ' ');
    (put(pieces), ...);
    text_ += '\n';
  }

  std::string typed(Value value) const {
    return name_of(value) + ": " + scalar_names[static_cast<int>(function_.types[static_cast<std::size_t>(value)])];
  }

  // "%7: f32, %8: i64 = ", or nothing.
  template <class Items, class Get>
  std::string results_text(const Items& items, Get&& get) const {
    std::string text;
    for (const auto& item : items) text += (text.empty() ? "" : ", ") + typed(get(item));
    return text.empty() ? text : text + " = ";
  }

  std::string carries_text(const std::vector<Carry>& carries) const {
    if (carries.empty()) return "";
    std::string text;
    for (const Carry& carry : carries) {
      text += (text.empty() ? " (" : ", ") + typed(carry.inside) + " = " + name_of(carry.initial);
      if (carry.combine == Op::constant) continue;
      text += std::string(" joined by ") + op_names[static_cast<int>(carry.combine)];
      if (carry.identity != no_value) text += " from " + name_of(carry.identity);
    }
    return text + ")";
  }

  void print_next(const std::vector<Carry>& carries) {
    if (carries.empty()) return;
    std::string text;
    for (const Carry& carry : carries) text += (text.empty() ? "next " : ", ") + name_of(carry.next);
    line(text);
  }

  void print(const Block& block) {
    ++depth_;
    for (const Statement& statement : block) {
      std::visit([this](const auto& what) { print(what); }, statement.what);
    }
    --depth_;
  }

  void print(const Compute& compute) {
    const Scalar type = function_.types[static_cast<std::size_t>(compute.result)];
    const Typed result{compute.result};
    if (compute.op == Op::constant) return line(result, " = ", constant_text(type, compute.bits));
    text_.append(static_cast<std::size_t>(2 * depth_), ' ');
    put(result);
    text_ += " = ";
    text_ += compute.op == Op::call ? math_names[compute.bits] : op_names[static_cast<int>(compute.op)];
    if (compute.op == Op::apply) {
      text_ += " formula ";
      put(compute.bits);
      text_ += " to";
    }
    if (compute.op == Op::mul && compute.bits == rounded_product) text_ += " rounded";
    const char* separator = " ";
    for (Value operand : {compute.a, compute.b, compute.c}) {
      if (operand != no_value) {
        text_ += separator;
        put_name(operand);
      }
      separator = ", ";
    }
    text_ += '\n';
  }

  void print(const Load& load) { line(Typed{load.result}, " = load ", load.address); }
  void print(const Store& store) { line("store ", name_of(store.value), " to ", store.address); }

  void print(const For& loop) {
    std::string extent = loop.extent_value == no_value ? std::to_string(loop.extent) : name_of(loop.extent_value);
    line(results_text(loop.carries, [](const Carry& carry) { return carry.result; }) + "for " + name_of(loop.index) +
         " < " + extent + (loop.lanes ? " lanes" : "") + (loop.parallel ? " parallel" : "") +
         (loop.poll ? " poll" : "") + carries_text(loop.carries) + " {");
    print(loop.body);
    ++depth_;
    print_next(loop.carries);
    --depth_;
    line("}");
  }

  void print(const While& loop) {
    line(results_text(loop.carries, [](const Carry& carry) { return carry.result; }) + "while" +
         (loop.poll ? " poll" : "") + carries_text(loop.carries) + " {");
    print(loop.condition);
    ++depth_;
    line("go " + name_of(loop.go));
    --depth_;
    line("} do {");
    print(loop.body);
    ++depth_;
    print_next(loop.carries);
    --depth_;
    line("}");
  }

  void print(const Branch& branch) {
    auto yield = [this](const std::vector<Branch::Result>& results, Value Branch::Result::*side) {
      std::string text;
      for (const Branch::Result& result : results) text += (text.empty() ? "  yield " : ", ") + name_of(result.*side);
      if (!text.empty()) line(text);
    };
    line(results_text(branch.results, [](const Branch::Result& result) { return result.result; }) + "if " +
         name_of(branch.condition) + " {");
    print(branch.yes);
    yield(branch.results, &Branch::Result::yes);
    line("} else {");
    print(branch.no);
    yield(branch.results, &Branch::Result::no);
    line("}");
  }

  void print(const Invoke& invoke) { line("invoke ", invoke.function, invoke.arguments); }
  void print(const Host& host) { line("host ", host.kernel, host.arguments); }

  const Function& function_;
  std::string text_;
  int depth_ = 0;
};

}  // namespace

std::string to_string(const Function& function) { return Printer(function).run(); }

std::string to_string(const Module& module) {
  std::string text;
  for (std::size_t i = 0; i < module.functions.size(); ++i) {
    text += (i ? "\n" : "") + std::to_string(i) + ": " + to_string(module.functions[i]);
  }
  return text;
}

}  // namespace capibara::cpu
