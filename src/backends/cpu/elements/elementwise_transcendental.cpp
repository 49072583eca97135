// Exponentials, logarithms, trigonometric and hyperbolic functions in loop form, over math/.
#include "backends/cpu/elements/elementwise.h"
#include "lax/math/complex_roots.h"
#include "lax/math/exponential.h"
#include "lax/math/trigonometric.h"

namespace capibara::cpu {

namespace {

#define CAPIBARA_FOR_EACH_TRANSCENDENTAL(apply)                                                                  \
  apply(exp2) apply(log) apply(expm1) apply(log1p) apply(tanh) apply(logistic) apply(sin) apply(cos) \
  apply(tan) apply(asin) apply(acos) apply(atan) apply(sinh) apply(cosh) apply(asinh) apply(acosh) apply(atanh)

#define CAPIBARA_FUNCTION(name)                                                            \
  Element name##_real(const Call& call) { return element_of(math::name(call.number(0))); } \
  Element name##_complex(const Call& call) { return element_of(math::name(call.complex(0))); }
CAPIBARA_FOR_EACH_TRANSCENDENTAL(CAPIBARA_FUNCTION)
#undef CAPIBARA_FUNCTION

// exp of a number with the eight digits of bfloat16, to be rounded to as many: 2^n times a polynomial of degree 4. For each of
// the 65536 numbers it rounds to what exp of float32 rounds to, at half the cost (tests/backends/cpu look at all of them).
Number exp_of_bfloat16(Number x) {
  Builder& b = *x.builder;
  Number inside = math::elementary::detail::bounded(x, -88, 89);
  // n + 127 in the last digits of a large number. The factor is a little below 1 / log 2: 88.5 then has n = 127.
  const double magic = 12582912.0 + 127;
  Number shifted = math::multiply_add(inside, math::constant(1.4398096508071856, x), math::constant(magic, x));
  Number minus_n = math::constant(magic, x) - shifted;
  Number rest = math::multiply_add(inside, math::constant(1.4426950408889634, x), minus_n);
  const double series[] = {0.00956280529499054, 0.0559009425342083, 0.24024848639965057, 0.693125307559967, 1.000001311302185};
  const Value word = b.convert(Op::bitcast, Scalar::i32, shifted.value);
  const Value power = b.compute(Op::shift_left, word, b.constant_int(Scalar::i32, 23));
  return math::polynomial(rest, series) * Number{&b, b.convert(Op::bitcast, Scalar::f32, power)};
}

Element exp_real(const Call& call) {
  return element_of(call.type() == DType::bfloat16 ? exp_of_bfloat16(call.number(0)) : math::exp(call.number(0)));
}
Element exp_complex(const Call& call) { return element_of(math::exp(call.complex(0))); }

Element atan2_real(const Call& call) { return element_of(math::atan2(call.number(0), call.number(1))); }

// -i log((x + iy) / sqrt(x^2 + y^2))
Element atan2_complex(const Call& call) {
  const math::Complex<Number> a = call.complex(0), b = call.complex(1);
  const math::Complex<Number> turned{b.real - a.imag, b.imag + a.real};
  const math::Complex<Number> angle = math::log(turned / math::sqrt(b * b + a * a));
  return element_of(math::Complex<Number>{angle.imag, -angle.real});
}

}  // namespace

ElementwiseRows transcendental_rows() {
#define CAPIBARA_ENTRY(name) {#name, nullptr, nullptr, name##_real, name##_complex, nullptr},
  return {CAPIBARA_ENTRY(exp) CAPIBARA_FOR_EACH_TRANSCENDENTAL(CAPIBARA_ENTRY){"atan2", nullptr, nullptr, atan2_real,
                                                                               atan2_complex, nullptr}};
#undef CAPIBARA_ENTRY
}

}  // namespace capibara::cpu
