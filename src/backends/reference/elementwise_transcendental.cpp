// Kernels of exponentials, logarithms, trigonometric and hyperbolic functions, over math/.
#include "backends/reference/elementwise.h"
#include "lax/math/complex_roots.h"
#include "lax/math/exponential.h"
#include "lax/math/trigonometric.h"

namespace capibara::reference {

namespace {

#define CAPIBARA_FOR_EACH_TRANSCENDENTAL(apply)                                                                     \
  apply(exp) apply(exp2) apply(log) apply(expm1) apply(log1p) apply(tanh) apply(logistic) apply(sin) apply(cos)    \
  apply(tan) apply(asin) apply(acos) apply(atan) apply(sinh) apply(cosh) apply(asinh) apply(acosh) apply(atanh)

#define CAPIBARA_FUNCTION(name)                           \
  struct Function_##name {                                \
    template <std::floating_point T>                      \
    T operator()(T x) const {                             \
      return math::name(x);                               \
    }                                                     \
    template <class T>                                    \
    std::complex<T> operator()(std::complex<T> x) const { \
      return drop(math::name(lift(x)));                   \
    }                                                     \
  };
CAPIBARA_FOR_EACH_TRANSCENDENTAL(CAPIBARA_FUNCTION)
#undef CAPIBARA_FUNCTION

struct Atan2 {
  template <std::floating_point T>
  T operator()(T y, T x) const {
    return math::atan2(y, x);
  }
  // -i log((x + iy) / sqrt(x^2 + y^2))
  template <class T>
  std::complex<T> operator()(std::complex<T> y, std::complex<T> x) const {
    const math::Complex<T> a = lift(y), b = lift(x);
    const math::Complex<T> turned{b.real - a.imag, b.imag + a.real};
    const math::Complex<T> angle = math::log(turned / math::sqrt(b * b + a * a));
    return {angle.imag, -angle.real};
  }
};

}  // namespace

KernelList transcendental_kernels() {
#define CAPIBARA_ENTRY(name) {#name, unary<Function_##name>},
  return {CAPIBARA_FOR_EACH_TRANSCENDENTAL(CAPIBARA_ENTRY){"atan2", binary<Atan2>}};
#undef CAPIBARA_ENTRY
}

}  // namespace capibara::reference
