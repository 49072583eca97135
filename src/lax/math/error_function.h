// erf, erfc and the inverse of erf.
//
// float32 erf and erf_inv follow jax step by step (a rational function, and Giles' polynomials, "Approximating the
// erfinv function", GPU Computing Gems 2011) because jax.random.normal and truncated_normal are made of them. Largest
// difference from jax 0.10.2 in ULP (float32, float64): erf 0, 0; erfc 2, 0; erf_inv 0, 0 (float32 over all 2^23 values
// that jax.random.normal feeds it). From the truth in float64: erf 1, erfc 34, erf_inv 13.
#pragma once

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

template <class V>
V erf_inv(V x) {
  V w = -log1p(x * -x);
  V root = sqrt(w);
  V result = w;
  if (is_double(x)) {
    const double central[] = {
        -3.6444120640178196996e-21, -1.685059138182016589e-19,  1.2858480715256400167e-18,  1.115787767802518096e-17,
        -1.333171662854620906e-16,  2.0972767875968561637e-17,  6.6376381343583238325e-15,  -4.0545662729752068639e-14,
        -8.1519341976054721522e-14, 2.6335093153082322977e-12,  -1.2975133253453532498e-11, -5.4154120542946279317e-11,
        1.051212273321532285e-09,   -4.1126339803469836976e-09, -2.9070369957882005086e-08, 4.2347877827932403518e-07,
        -1.3654692000834678645e-06, -1.3882523362786468719e-05, 0.0001867342080340571352,   -0.00074070253416626697512,
        -0.0060336708714301490533,  0.24015818242558961693,     1.6536545626831027356};
    const double middle[] = {
        2.2137376921775787049e-09,  9.0756561938885390979e-08, -2.7517406297064545428e-07, 1.8239629214389227755e-08,
        1.5027403968909827627e-06,  -4.013867526981545969e-06, 2.9234449089955446044e-06,  1.2475304481671778723e-05,
        -4.7318229009055733981e-05, 6.8284851459573175448e-05, 2.4031110387097893999e-05,  -0.0003550375203628474796,
        0.00095328937973738049703,  -0.0016882755560235047313, 0.0024914420961078508066,   -0.0037512085075692412107,
        0.005370914553590063617,    1.0052589676941592334,     3.0838856104922207635};
    const double tail[] = {-2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,
                           -3.7894654401267369937e-09, 7.6157012080783393804e-09,  -1.4960026627149240478e-08,
                           2.9147953450901080826e-08,  -6.7711997758452339498e-08, 2.2900482228026654717e-07,
                           -9.9298272942317002539e-07, 4.5260625972231537039e-06,  -1.9681778105531670567e-05,
                           7.5995277030017761139e-05,  -0.00021503011930044477347, -0.00013871931833623122026,
                           1.0103004648645343977,      4.8499064014085844221};
    V near = polynomial(w - constant(3.125, x), central);
    V far = select(lt(w, constant(16, x)), polynomial(root - constant(3.25, x), middle),
                   polynomial(root - constant(5, x), tail));
    result = select(lt(w, constant(6.25, x)), near, far) * x;
  } else {
    const double central[] = {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                              -0.00125372503, -0.00417768164, 0.246640727,    1.50140941};
    const double tail[] = {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                           -0.0076224613,   0.00943887047,  1.00167406,    2.83297682};
    V near = polynomial(w - constant(2.5, x), central);
    V far = polynomial(root - constant(3, x), tail);
    result = select(lt(w, constant(5, x)), near, far) * x;
  }
  // The ends are infinite with the sign of x; beyond them log1p has already given NaN.
  return select(eq(abs(x), constant(1, x)), x * constant(infinity, x), result);
}

}  // namespace capibara::math
