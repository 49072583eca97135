// Kernels of special functions, over math/.
#include "backends/reference/elementwise.h"
#include "lax/math/bessel.h"
#include "lax/math/error_function.h"
#include "lax/math/gamma.h"
#include "lax/math/incomplete_beta.h"
#include "lax/math/incomplete_gamma.h"
#include "lax/math/zeta.h"

namespace capibara::reference {

namespace {

#define CAPIBARA_FOR_EACH_UNARY(apply) \
  apply(erf) apply(erfc) apply(erf_inv) apply(lgamma) apply(digamma) apply(bessel_i0e) apply(bessel_i1e)
#define CAPIBARA_FOR_EACH_BINARY(apply) \
  apply(igamma) apply(igammac) apply(igamma_grad_a) apply(random_gamma_grad) apply(polygamma) apply(zeta)

#define CAPIBARA_UNARY_FUNCTION(name) \
  struct Function_##name {            \
    template <std::floating_point T>  \
    T operator()(T x) const {         \
      return math::name(x);           \
    }                                 \
  };
#define CAPIBARA_BINARY_FUNCTION(name) \
  struct Function_##name {             \
    template <std::floating_point T>   \
    T operator()(T x, T y) const {     \
      return math::name(x, y);         \
    }                                  \
  };
CAPIBARA_FOR_EACH_UNARY(CAPIBARA_UNARY_FUNCTION)
CAPIBARA_FOR_EACH_BINARY(CAPIBARA_BINARY_FUNCTION)

struct IncompleteBeta {
  template <std::floating_point T>
  T operator()(T a, T b, T x) const {
    return math::regularized_incomplete_beta(a, b, x);
  }
};

Arrays regularized_incomplete_beta(const KernelArgs& args) { return apply_ternary(args, IncompleteBeta{}); }

}  // namespace

KernelList special_kernels() {
#define CAPIBARA_UNARY_ENTRY(name) {#name, unary<Function_##name>},
#define CAPIBARA_BINARY_ENTRY(name) {#name, binary<Function_##name>},
  return {CAPIBARA_FOR_EACH_UNARY(CAPIBARA_UNARY_ENTRY) CAPIBARA_FOR_EACH_BINARY(CAPIBARA_BINARY_ENTRY){
      "regularized_incomplete_beta", regularized_incomplete_beta}};
}

}  // namespace capibara::reference
