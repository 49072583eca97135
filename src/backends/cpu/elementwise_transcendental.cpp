// Exponentials, logarithms, trigonometric and hyperbolic functions in loop form, over math/.
#include "backends/cpu/elementwise.h"
#include "primitives/math/complex_roots.h"
#include "primitives/math/exponential.h"
#include "primitives/math/trigonometric.h"

namespace capibara::cpu {

namespace {

#define CAPIBARA_FOR_EACH_TRANSCENDENTAL(apply)                                                                  \
  apply(exp) apply(exp2) apply(log) apply(expm1) apply(log1p) apply(tanh) apply(logistic) apply(sin) apply(cos) \
  apply(tan) apply(asin) apply(acos) apply(atan) apply(sinh) apply(cosh) apply(asinh) apply(acosh) apply(atanh)

#define CAPIBARA_FUNCTION(name)                                                            \
  Element name##_real(const Call& call) { return element_of(math::name(call.number(0))); } \
  Element name##_complex(const Call& call) { return element_of(math::name(call.complex(0))); }
CAPIBARA_FOR_EACH_TRANSCENDENTAL(CAPIBARA_FUNCTION)
#undef CAPIBARA_FUNCTION

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
#define CAPIBARA_ENTRY(name) {#name, nullptr, nullptr, name##_real, name##_complex, nullptr, true},
  return {CAPIBARA_FOR_EACH_TRANSCENDENTAL(CAPIBARA_ENTRY){"atan2", nullptr, nullptr, atan2_real, atan2_complex,
                                                           nullptr, true}};
#undef CAPIBARA_ENTRY
}

}  // namespace capibara::cpu
