// The primitives that are formulas in loop form: generated from the list of math/. Those that iterate to convergence
// are absent.
#include "backends/cpu/elements/elementwise.h"
#include "lax/math/math.h"

namespace capibara::cpu {

namespace {

template <class Formula>
Element write_real(const Call& call) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    return element_of(typename Formula::Function{}(call.number(i)...));
  }
  (std::make_index_sequence<Formula::operands>());
}

template <class Formula>
Element write_complex(const Call& call) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    return element_of(typename Formula::Function{}(call.complex(i)...));
  }
  (std::make_index_sequence<Formula::operands>());
}

template <class Formula>
ElementwiseRow row_of(const Formula& formula) {
  Writer complex = nullptr;
  if constexpr (Formula::is_complex) complex = write_complex<Formula>;
  return {formula.primitive, nullptr, nullptr, write_real<Formula>, complex, nullptr};
}

// exp of a number with the 8 significant bits of bfloat16, to be rounded to 8 bits: 2^n times a polynomial of degree 4.
// For each of the 65536 inputs it rounds to the same value as float32 exp, at half the cost (tests/backends/cpu check
// all of them).
Number exp_of_bfloat16(Number x) {
  Builder& b = *x.builder;
  Number inside = math::elementary::detail::bounded(x, -88, 89);
  // n + 127 in the last bits of a large number. The factor is slightly below 1 / log 2, so that 88.5 gives n = 127.
  const double magic = 12582912.0 + 127;
  Number shifted = math::multiply_add(inside, math::constant(1.4398096508071856, x), math::constant(magic, x));
  Number minus_n = math::constant(magic, x) - shifted;
  Number rest = math::multiply_add(inside, math::constant(1.4426950408889634, x), minus_n);
  const double series[] = {0.00956280529499054, 0.0559009425342083, 0.24024848639965057, 0.693125307559967,
                           1.000001311302185};
  const Value word = b.convert(Op::bitcast, Scalar::i32, shifted.value);
  const Value power = b.compute(Op::shift_left, word, b.constant_int(Scalar::i32, 23));
  return math::polynomial(rest, series) * Number{&b, b.convert(Op::bitcast, Scalar::f32, power)};
}

Element exp_real(const Call& call) {
  return element_of(call.type() == DType::bfloat16 ? exp_of_bfloat16(call.number(0)) : math::exp(call.number(0)));
}
Element exp_complex(const Call& call) { return element_of(math::exp(call.complex(0))); }

}  // namespace

ElementwiseRows formula_rows() {
  return std::apply([](const auto&... formula) { return ElementwiseRows{row_of(formula)...}; }, math::formulas);
}

ElementwiseRows exponential_rows() { return {{"exp", nullptr, nullptr, exp_real, exp_complex, nullptr}}; }

}  // namespace capibara::cpu
