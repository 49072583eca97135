// Defining equations and readers of a program's variables, and the conditions of matches that follow from them.
#include "program/ir/match.h"

#include <algorithm>
#include <limits>

namespace capibara {

namespace {

std::size_t index(int64_t i) { return static_cast<std::size_t>(i); }

bool among(std::span<const int> list, int value) { return std::find(list.begin(), list.end(), value) != list.end(); }

}  // namespace

Uses::Uses(const Program& program)
    : program_(program),
      maker_(index(program.var_count()), -1),
      readers_(index(program.var_count())),
      is_result_(index(program.var_count()), false) {
  for (int at = 0; at < static_cast<int>(program.equations().size()); ++at) {
    for (Atom input : (*this)[at].inputs) {
      if (input.is_literal()) continue;
      std::vector<int>& readers = readers_[index(input.code)];
      if (readers.empty() || readers.back() != at) readers.push_back(at);
    }
    for (Var output : (*this)[at].outputs) {
      if (!output.dropped()) maker_[index(output.id)] = at;
    }
  }
  for (Atom output : program.outputs()) {
    if (!output.is_literal()) is_result_[index(output.code)] = true;
  }
}

int Uses::maker(Atom atom) const { return atom.is_literal() ? -1 : maker_[index(atom.code)]; }

std::span<const int> Uses::readers(Atom atom) const {
  return atom.is_literal() ? std::span<const int>() : readers_[index(atom.code)];
}

bool Uses::is_result(Atom atom) const { return !atom.is_literal() && is_result_[index(atom.code)]; }

const Equation* Uses::made_by(Atom atom, const Primitive& primitive) const {
  const int at = maker(atom);
  return at >= 0 && (*this)[at].primitive == primitive ? &(*this)[at] : nullptr;
}

bool is_closed(const Uses& uses, std::span<const int> inner, std::span<const int> last) {
  const auto within = [&](int at) { return among(inner, at) || among(last, at); };
  return std::all_of(inner.begin(), inner.end(), [&](int at) {
    const auto& outputs = uses[at].outputs;
    return among(last, at) || std::all_of(outputs.begin(), outputs.end(), [&](Var output) {
             if (output.dropped()) return true;
             const std::span<const int> readers = uses.readers(output);
             return !uses.is_result(output) && std::all_of(readers.begin(), readers.end(), within);
           });
  });
}

bool are_independent(const Uses& uses, std::span<const Atom> operands, std::span<const int> replaced,
                     std::span<const int> given) {
  if (replaced.empty()) return true;
  const int first = *std::min_element(replaced.begin(), replaced.end());
  std::vector<bool> met(uses.program().equations().size(), false);
  std::vector<Atom> open(operands.begin(), operands.end());
  while (!open.empty()) {
    const int at = uses.maker(open.back());
    open.pop_back();
    // Equations only read results of earlier ones: nothing before the first replaced one depends on any.
    if (at < first || met[index(at)] || among(given, at)) continue;
    if (among(replaced, at)) return false;
    met[index(at)] = true;
    open.insert(open.end(), uses[at].inputs.begin(), uses[at].inputs.end());
  }
  return true;
}

bool any_empty(std::span<const ArrayType> types) {
  return std::any_of(types.begin(), types.end(), [](const ArrayType& type) { return type.size() == 0; });
}

bool holds_exactly(DType dtype, IntegerRange range) {
  const auto power = [](int bits) { return bits >= 63 ? std::numeric_limits<int64_t>::max() : int64_t{1} << bits; };
  if (is_signed(dtype)) {
    const int64_t high = bits(dtype) == 64 ? power(63) : power(bits(dtype) - 1) - 1;
    return range.low >= -high - 1 && range.high <= high;
  }
  if (is_unsigned(dtype)) {
    return range.low >= 0 && (bits(dtype) >= 63 || range.high <= power(bits(dtype)) - 1);
  }
  if (!is_floating(dtype)) return false;
  const int64_t limit = power(dtype_row(dtype).mantissa_bits + 1);
  // Eight exponent bits reach far beyond every integer that the mantissa holds; narrower types are not worth a table.
  const bool wide_enough = dtype_row(dtype).exponent_bits >= 5 && dtype_row(dtype).mantissa_bits >= 7;
  return wide_enough && range.low >= -limit && range.high <= limit;
}

}  // namespace capibara
