// Special functions and the Threefry block in loop form, over math/. Those that iterate until they converge are absent.
#include "backends/cpu/elements/elementwise.h"
#include "lax/math/bessel.h"
#include "lax/math/error_function.h"
#include "lax/math/gamma.h"
#include "lax/math/zeta.h"

namespace capibara::cpu {

namespace {

#define CAPIBARA_FOR_EACH_UNARY(apply) \
  apply(erf) apply(erfc) apply(erf_inv) apply(lgamma) apply(digamma) apply(bessel_i0e) apply(bessel_i1e)
#define CAPIBARA_FOR_EACH_BINARY(apply) apply(polygamma) apply(zeta)

#define CAPIBARA_UNARY_FUNCTION(name) \
  Element name##_real(const Call& call) { return element_of(math::name(call.number(0))); }
#define CAPIBARA_BINARY_FUNCTION(name) \
  Element name##_real(const Call& call) { return element_of(math::name(call.number(0), call.number(1))); }
CAPIBARA_FOR_EACH_UNARY(CAPIBARA_UNARY_FUNCTION)
CAPIBARA_FOR_EACH_BINARY(CAPIBARA_BINARY_FUNCTION)
#undef CAPIBARA_UNARY_FUNCTION
#undef CAPIBARA_BINARY_FUNCTION

Element threefry(const Call& call) {
  const auto word = [&](std::size_t i) { return Word{&call.b, call.value(i)}; };
  const auto words = math::threefry2x32<Word>({word(0), word(1)}, {word(2), word(3)});
  return Element(words[static_cast<std::size_t>(call.output)].value);
}

}  // namespace

ElementwiseRows special_rows() {
#define CAPIBARA_ENTRY(name) {#name, nullptr, nullptr, name##_real, nullptr, nullptr},
  return {CAPIBARA_FOR_EACH_UNARY(CAPIBARA_ENTRY) CAPIBARA_FOR_EACH_BINARY(CAPIBARA_ENTRY){
      "threefry2x32", nullptr, threefry, nullptr, nullptr, nullptr}};
#undef CAPIBARA_ENTRY
}

}  // namespace capibara::cpu
