// Rules of arithmetic, selection and conversion.
#include "compiler/optimise/simplify.h"

#include <cmath>
#include <complex>

namespace capibara::passes {

namespace {

using Result = std::optional<Atom>;

// True for a literal operand exactly equal to this number; a zero must have the same sign.
bool equals(Site& site, std::size_t input, double number) {
  const Array* value = site.simplifier.uniform(site.inputs[input]);
  if (!value || is_complex(value->dtype()) || is_key(value->dtype())) return false;
  if (!is_floating(value->dtype())) return value->item<int64_t>() == static_cast<int64_t>(number);
  double own = value->item<double>();
  return own == number && std::signbit(own) == std::signbit(number);
}

// One, of any type. As in XLA, complex numbers times one are unchanged, infinities included: the four products of the
// definition would give NaN for infinity times the one's imaginary zero.
bool is_one(Site& site, std::size_t input) {
  const Array* value = site.simplifier.uniform(site.inputs[input]);
  if (!value || !is_complex(value->dtype())) return equals(site, input, 1);
  const std::complex<double> own = value->item<std::complex<double>>();
  return own == 1.0 && !std::signbit(own.imag());
}

// The operand, if it already has the output's shape.
Result operand(Site& site, std::size_t input) {
  if (site.type(input).shape != site.output_type().shape) return std::nullopt;
  return site.inputs[input];
}

bool is_number(Site& site) { return is_floating(site.type(0).dtype) || is_integer(site.type(0).dtype); }

Result zeros(Site& site, std::size_t zero) {
  ArrayType type = site.output_type();
  const Array* value = site.simplifier.uniform(site.inputs[zero]);
  Atom literal = site.simplifier.literal(*value);
  if (type.shape.empty()) return literal;
  return site.simplifier.add(prim::broadcast_in_dim(), {literal}, broadcast_attrs(type.shape, {}), site.source);
}

Result multiply(Site& site) {
  for (std::size_t i : {0, 1}) {
    if (is_one(site, 1 - i)) return operand(site, i);
  }
  if (!is_number(site)) return std::nullopt;
  for (std::size_t i : {0, 1}) {
    if (!is_floating(site.type(0).dtype) && equals(site, 1 - i, 0)) return zeros(site, 1 - i);
  }
  return std::nullopt;
}

Result divide(Site& site) { return is_one(site, 1) ? operand(site, 0) : std::nullopt; }

Result add(Site& site) {
  if (!is_number(site)) return std::nullopt;
  double neutral = is_floating(site.type(0).dtype) ? -0.0 : 0.0;
  for (std::size_t i : {0, 1}) {
    if (equals(site, 1 - i, neutral)) return operand(site, i);
  }
  return std::nullopt;
}

Result subtract(Site& site) { return is_number(site) && equals(site, 1, 0.0) ? operand(site, 0) : std::nullopt; }

Result shift(Site& site) { return equals(site, 1, 0) ? operand(site, 0) : std::nullopt; }

// or and xor with no bits set, and with all bits set.
template <bool is_and>
Result bits(Site& site) {
  double neutral = !is_and ? 0 : is_bool(site.type(0).dtype) ? 1 : -1;
  for (std::size_t i : {0, 1}) {
    if (is_and && !is_bool(site.type(0).dtype) && !is_signed(site.type(0).dtype)) continue;
    if (equals(site, 1 - i, neutral)) return operand(site, i);
  }
  return std::nullopt;
}

// neg and not are their own inverses.
Result involution(Site& site) {
  const Equation* inner = site.simplifier.made_by(site.inputs[0], site.primitive);
  return inner ? Result(inner->inputs[0]) : std::nullopt;
}

Result identity(Site& site) { return site.inputs[0]; }

template <std::size_t which>
Result part_of_complex(Site& site) {
  const Equation* inner = site.simplifier.made_by(site.inputs[0], prim::complex());
  if (!inner || site.simplifier.type(inner->inputs[which]).shape != site.type(0).shape) return std::nullopt;
  return inner->inputs[which];
}

Result first_power(Site& site) { return site.attrs.integer("y") == 1 ? Result(site.inputs[0]) : std::nullopt; }

Result select(Site& site) {
  bool equal = true;
  for (std::size_t i = 2; i < site.inputs.size(); ++i) equal &= site.inputs[i] == site.inputs[1];
  if (equal) return site.inputs[1];
  const Array* which = site.simplifier.uniform(site.inputs[0]);
  if (!which) return std::nullopt;
  int64_t last = static_cast<int64_t>(site.inputs.size()) - 2;
  int64_t index = is_bool(which->dtype()) ? static_cast<int64_t>(which->item<bool>()) : which->item<int64_t>();
  if (index < 0 || index > last) return std::nullopt;
  return site.inputs[1 + static_cast<std::size_t>(index)];
}

// True if every value of one dtype is a value of the other.
bool is_exact(DType from, DType to) {
  if (from == to) return true;
  auto is_plain_number = [](DType dtype) { return is_integer(dtype) || is_floating(dtype); };
  // Types without infinities, denormals or an ordinary zero are left alone.
  auto plain = [](DType dtype) {
    return dtype == DType::float16 || dtype == DType::bfloat16 || dtype == DType::float32 || dtype == DType::float64;
  };
  if (!is_plain_number(to) || (is_floating(to) && !plain(to))) return false;
  if (is_bool(from)) return capibara::bits(to) >= 8;
  if (!is_plain_number(from)) return false;
  if (is_integer(from) && is_integer(to)) {
    IntInfo a = iinfo(from), b = iinfo(to);
    return static_cast<double>(a.min) >= static_cast<double>(b.min) && capibara::bits(to) > capibara::bits(from);
  }
  if (is_floating(from) && !is_floating(to)) return false;
  FloatInfo wide = finfo(to);
  if (is_integer(from)) {
    return capibara::bits(from) - (is_signed(from) ? 1 : 0) <= wide.mantissa_bits + 1 &&
           std::ldexp(1.0, static_cast<int>(capibara::bits(from))) < wide.max;
  }
  FloatInfo narrow = finfo(from);
  return plain(from) && narrow.mantissa_bits <= wide.mantissa_bits && narrow.max <= wide.max &&
         narrow.tiny >= wide.tiny;
}

// convert B -> C of convert A -> B is convert A -> C if A -> B preserves every value.
Result convert(Site& site) {
  DType to = site.attrs.dtype("new_dtype");
  if (!is_plain(site.attrs)) return std::nullopt;
  if (site.type(0).dtype == to) return site.inputs[0];
  const Equation* inner = site.simplifier.made_by(site.inputs[0], prim::convert_element_type());
  if (!inner || !is_plain(inner->attrs)) return std::nullopt;
  DType from = site.simplifier.type(inner->inputs[0]).dtype;
  if (!is_exact(from, site.type(0).dtype)) return std::nullopt;
  // Floats out of an integer type's range saturate, integers wrap around.
  if (is_floating(site.type(0).dtype) && is_integer(from) && is_integer(to) && from != to && !is_exact(from, to))
    return std::nullopt;
  Atom x = inner->inputs[0];
  if (from == to) return x;
  return site.simplifier.add(site.primitive, {x}, site.attrs, site.source);
}

}  // namespace

void add_algebra_rules(Rules& rules) {
  rules.add({
      {prim::mul(), multiply},
      {prim::div(), divide},
      {prim::add(), add},
      {prim::add_any(), add},
      {prim::sub(), subtract},
      {prim::shift_left(), shift},
      {prim::shift_right_arithmetic(), shift},
      {prim::shift_right_logical(), shift},
      {prim::or_(), bits<false>},
      {prim::xor_(), bits<false>},
      {prim::and_(), bits<true>},
      {prim::neg(), involution},
      {prim::not_(), involution},
      {prim::copy(), identity},
      {prim::stop_gradient(), identity},
      {prim::real(), part_of_complex<0>},
      {prim::imag(), part_of_complex<1>},
      {prim::integer_pow(), first_power},
      {prim::select_n(), select},
      {prim::convert_element_type(), convert},
  });
}

}  // namespace capibara::passes
