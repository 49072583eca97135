// erf and erfc.
//
// float32 erf follows jax step by step (a rational function) because jax.random.truncated_normal uses it. Largest
// difference from jax 0.10.2 in ULP (float32, float64): erf 0, 0; erfc 2, 0. From the truth in float64: erf 1, erfc 34.
#pragma once

#include "lax/math/formula.h"
#include "lax/math/value.h"

namespace capibara::math {

namespace detail {

// Moshier's Cephes, ndtr.c: erf(x) on |x| < 1 and erfc(size) e^(size^2) beyond, in double precision.
template <class V>
V erf_near(V x, V square) {
  const double t[] = {9.60497373987051638749e0, 9.00260197203842689217e1, 2.23200534594684319226e3,
                      7.00332514112805075473e3, 5.55923013010394962768e4};
  const double u[] = {1.0,
                      3.35617141647503099647e1,
                      5.21357949780152679795e2,
                      4.59432382970980127987e3,
                      2.26290000613890934246e4,
                      4.92673942608635921086e4};
  return x * polynomial(square, t) / polynomial(square, u);
}
template <class V>
V erfc_far(V size, V power) {
  const double p[] = {2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687e0,
                      4.86371970985681366614e1,   1.96520832956077098242e2,  5.26445194995477358631e2,
                      9.34528527171957607540e2,   1.02755188689515710272e3,  5.57535335369399327526e2};
  const double q[] = {1.0,
                      1.32281951154744992508e1,
                      8.67072140885989742329e1,
                      3.54937778887819891062e2,
                      9.75708501743205489753e2,
                      1.82390916687909736289e3,
                      2.24633760818710981792e3,
                      1.65666309194161350182e3,
                      5.57535340817727675546e2};
  const double r[] = {5.64189583547755073984e-1, 1.27536670759978104416e0, 5.01905042251180477414e0,
                      6.16021097993053585195e0,  7.40974269950448939160e0, 2.97886665372100240670e0};
  const double s[] = {1.0,
                      2.26052863220117276590e0,
                      9.39603524938001434673e0,
                      1.20489539808096656605e1,
                      1.70814450747565897222e1,
                      9.60896809063285878198e0,
                      3.36907645100081516050e0};
  return select(lt(size, constant(8, size)), power * polynomial(size, p) / polynomial(size, q),
                power * polynomial(size, r) / polynomial(size, s));
}

}  // namespace detail

namespace in_lanes {

// erf of double precision without libm, for generated code. Beyond 6 it is 1.
template <class V>
V erf(V x) {
  V size = abs(x), square = x * x, one = constant(1, x);
  V bounded = select(gt(size, constant(6, x)), constant(6, x), size);
  V far = one - math::detail::erfc_far(bounded, exp(-(bounded * bounded)));
  return select(lt(size, one), math::detail::erf_near(x, square), copysign(far, x));
}

}  // namespace in_lanes

template <class V>
V erf(V x) {
  if (is_double(x)) return Operations<V>::erf(x);
  const double above[] = {0.000229050653, 0.00340829091, 0.0509556942, 0.185208321, 1.12837911};
  const double below[] = {-1.17916031e-07, 2.35479656e-05, 0.00101796258, 0.0140704699, 0.110985048, 0.497469246, 1.0};
  V square = x * x, one = constant(1, x);
  V near = x * polynomial(square, above) / polynomial(square, below);
  return select(ge(abs(x), constant(3.8325069, x)), copysign(one, x), near);
}

template <class V>
V erfc(V x) {
  V one = constant(1, x), two = constant(2, x), zero = constant(0, x);
  V size = abs(x), square = x * x;
  V power = exp(-square);
  V near = one, far = one;
  if (is_double(x)) {
    near = one - detail::erf_near(x, square);
    far = detail::erfc_far(size, power);
  } else {
    // Moshier's Cephes, ndtrf.c.
    const double t[] = {7.853861353153693e-5, -8.010193625184903e-4, 5.188327685732524e-3, -2.685381193529856e-2,
                        1.128358514861418e-1, -3.761262582423300e-1, 1.128379165726710e0};
    const double p[] = {2.326819970068386e-2,  -1.387039388740657e-1, 3.687424674597105e-1,
                        -5.824733027278666e-1, 6.210004621745983e-1,  -4.944515323274145e-1,
                        3.404879937665872e-1,  -2.741127028184656e-1, 5.638259427386472e-1};
    const double r[] = {-1.047766399936249e1, 1.297719955372516e1,  -7.495518717768503e0,  2.921019019210786e0,
                        -1.015265279202700e0, 4.218463358204948e-1, -2.820767439740514e-1, 5.641895067754075e-1};
    V inverse_square = one / square;
    near = multiply_add(-x, polynomial(square, t), one);
    far = power * (one / size) * select(lt(size, two), polynomial(inverse_square, p), polynomial(inverse_square, r));
  }
  // exp(-x^2) is denormal past here.
  V underflow = constant(is_double(x) ? -709.78271289338399 : -88.72283905206835, x);
  far = select(lt(-square, underflow), zero, far);
  far = select(lt(x, zero), two - far, far);
  return select(lt(size, one), near, far);
}

inline constexpr std::tuple error_function_formulas{formula<1>("erf", [](auto x) { return erf(x); }),
                                                    formula<1>("erfc", [](auto x) { return erfc(x); })};

}  // namespace capibara::math
