// jax.scipy.special: exponential, trigonometric, Fresnel and Spence's integrals, by the approximations of Cephes.
#include <capibara/control.h>
#include <capibara/custom_derivatives.h>
#include <capibara/scipy/special.h>

#include <cmath>
#include <functional>

#include "library/nn/terms.h"

namespace capibara::jax::scipy::special {

using namespace terms;

namespace {

using TwoArrays = std::pair<Array, Array>;

// jnp.piecewise: the last condition that holds applies.
struct Case {
  Array condition, value;
};
Array piecewise(Array otherwise, std::initializer_list<Case> cases) {
  for (const Case& one : cases) otherwise = where(one.condition, one.value, otherwise);
  return otherwise;
}

// ---- the exponential integrals --------------------------------------------------------------------------------------

Array expi_to_2(const Array& x) {
  const Array polynomial_x =
      polynomial(x, {-5.350447357812542947283e0, 2.185049168816613393830e2, -4.176572384826693777058e3,
                     5.541176756393557601232e4, -3.313381331178144034309e5, 1.592627163384945414220e6});
  const Array ratio = polynomial_x / polynomial(x, {1.0, -5.250547959112862969197e1, 1.259616186786790571525e3,
                                                    -1.756549581973534652631e4, 1.493062117002725991967e5,
                                                    -7.294949239640527645655e5, 1.592627163384945429726e6});
  Array sum = x * ratio + std::numbers::egamma;
  return sum + lax::log(x);
}

// exp(x) / x (1 + f(1 / x) / x).
Array expi_tail(const Array& x, std::initializer_list<double> numerator, std::initializer_list<double> denominator) {
  const Array w = constant(x, 1) / x;
  const Array polynomial_w = polynomial(w, numerator);
  const Array f = polynomial_w / polynomial(w, denominator);
  Array product = lax::exp(x) * w, product_w = w * f;
  return product * (product_w + constant(x, 1));
}

Array expi_positive(const Array& x) {
  auto between = [&](double low, double high) {
    Array is_less = constant(x, low) < x;
    return is_less & (x <= constant(x, high));
  };
  const Array to_4 = expi_tail(
      x,
      {1.981808503259689673238e-2, -1.271645625984917501326e0, -2.088160335681228318920e0, 2.755544509187936721172e0,
       -4.409507048701600257171e-1, 4.665623805935891391017e-2, -1.545042679673485262580e-3,
       7.059980605299617478514e-5},
      {1.0, 1.476498670914921440652e0, 5.629177174822436244827e-1, 1.699017897879307263248e-1,
       2.291647179034212017463e-2, 4.450150439728752875043e-3, 1.727439612206521482874e-4, 3.953167195549672482304e-5});
  const Array to_8 = expi_tail(
      x,
      {-1.373215375871208729803e0, -7.084559133740838761406e-1, 1.580806855547941010501e0, -2.601500427425622944234e-1,
       2.994674694113713763365e-2, -1.038086040188744005513e-3, 4.371064420753005429514e-5, 2.141783679522602903795e-6},
      {1.0, 8.585231423622028380768e-1, 4.483285822873995129957e-1, 7.687932158124475434091e-2,
       2.449868241021887685904e-2, 8.832165941927796567926e-4, 4.590952299511353531215e-4, -4.729848351866523044863e-6,
       2.665195537390710170105e-6});
  const Array to_16 = expi_tail(
      x,
      {-2.106934601691916512584e0, 1.732733869664688041885e0, -2.423619178935841904839e-1, 2.322724180937565842585e-2,
       2.372880440493179832059e-4, -8.343219561192552752335e-5, 1.363408795605250394881e-5, -3.655412321999253963714e-7,
       1.464941733975961318456e-8, 6.176407863710360207074e-10},
      {1.0, -2.298062239901678075778e-1, 1.105077041474037862347e-1, -1.566542966630792353556e-2,
       2.761106850817352773874e-3, -2.089148012284048449115e-4, 1.708528938807675304186e-5, -4.459311796356686423199e-7,
       1.394634930353847498145e-8, 6.150865933977338354138e-10});
  const Array to_32 = expi_tail(x,
                                {-2.458119367674020323359e-1, -1.483382253322077687183e-1, 7.248291795735551591813e-2,
                                 -1.348315687380940523823e-2, 1.342775069788636972294e-3, -7.942465637159712264564e-5,
                                 2.644179518984235952241e-6, -4.239473659313765177195e-8},
                                {1.0, -1.044225908443871106315e-1, -2.676453128101402655055e-1,
                                 9.695000254621984627876e-2, -1.601745692712991078208e-2, 1.496414899205908021882e-3,
                                 -8.462452563778485013756e-5, 2.728938403476726394024e-6, -4.239462431819542051337e-8});
  const Array to_64 = expi_tail(x,
                                {1.212561118105456670844e-1, -5.823133179043894485122e-1, 2.348887314557016779211e-1,
                                 -3.040034318113248237280e-2, 1.510082146865190661777e-3, -2.523137095499571377122e-5},
                                {1.0, -1.002252150365854016662e0, 2.928709694872224144953e-1,
                                 -3.337004338674007801307e-2, 1.560544881127388842819e-3, -2.523137093603234562648e-5});
  const Array beyond =
      expi_tail(x,
                {-7.657847078286127362028e-1, 6.886192415566705051750e-1, -2.132598113545206124553e-1,
                 3.346107552384193813594e-2, -3.076541477344756050249e-3, 1.747119316454907477380e-4,
                 -6.103711682274170530369e-6, 1.218032765428652199087e-7, -1.086076102793290233007e-9},
                {1.0, -1.888802868662308731041e0, 1.066691687211408896850e0, -2.751915982306380647738e-1,
                 3.930852688233823569726e-2, -3.414684558602365085394e-3, 1.866844370703555398195e-4,
                 -6.345146083130515357861e-6, 1.239754287483206878024e-7, -1.086076102793126632978e-9});
  return piecewise(beyond, {{between(0, 2), expi_to_2(x)},
                            {between(2, 4), to_4},
                            {between(4, 8), to_8},
                            {between(8, 16), to_16},
                            {between(16, 32), to_32},
                            {between(32, 64), to_64}});
}

// The power series of E_n for x <= 1; n and x are scalars of one dtype.
Array expn_series(const Array& n, const Array& x) {
  const double eps = finfo(x.dtype()).eps;
  const Array zero = constant(x, 0), one = constant(x, 1);
  using Sum = TwoArrays;  // the next divisor, the sum
  const Array psi = lax::while_loop([&](const Sum& s) { return lax::lt(s.first, n); },
                                    [&](const Sum& s) {
                                      Array sum_s = s.first + one;
                                      return Sum(sum_s, s.second + one / s.first);
                                    },
                                    Sum(one, -std::numbers::egamma - lax::log(x)))
                        .second;
  const Array is_equal = n == one, is_equal_n = n == one;
  const Array first = where(is_equal, zero, one / (one - where(is_equal_n, one + one, n)));
  using State = std::tuple<Array, Array, Array, Array, Array>;  // k, (-x)^k / k!, k + 1 - n, the sum, relative term
  Array difference = one - n;
  const State end = lax::while_loop(
      [&](const State& s) {
        Array is_greater = x > zero;
        return is_greater & (std::get<4>(s) > constant(x, eps));
      },
      [&](const State& s) {
        const auto& [k, power, divisor, total, relative] = s;
        const Array next_k = k + one, next_power = power * (-x / next_k), next_divisor = divisor + one;
        const Array is_different = next_divisor != zero;
        const Array next_total = total + where(is_different, next_power / next_divisor, zero);
        Array is_different_next_total = next_total != zero;
        return State(next_k, next_power, next_divisor, next_total,
                     where(is_different_next_total, lax::abs(next_power / next_total), one));
      },
      State(zero, one, difference, first, constant(x, infinity)));
  Array negated = -x, product = lax::pow(negated, n - one) * psi;
  return product / lax::exp(lax::lgamma(n)) - std::get<3>(end);
}

// The continued fraction of E_n for x > 1.
Array expn_fraction(const Array& n, const Array& x) {
  const Array eps = constant(x, finfo(x.dtype()).eps), big = constant(x, 1.44115188075855872e+17);
  const Array zero = constant(x, 0), one = constant(x, 1), two = constant(x, 2);
  struct Step {
    Array k, p2, q2, p1, q1, value, change;
  };
  using State = std::vector<Array>;
  auto unpack = [](const State& s) { return Step{s[0], s[1], s[2], s[3], s[4], s[5], s[6]}; };
  const State end = lax::while_loop(
      [&](const State& s) {
        Array is_greater = x > zero;
        return is_greater & (unpack(s).change > eps);
      },
      [&](const State& s) {
        const Step last = unpack(s);
        const Array k = last.k + one, odd = k % two == one;
        const Array y_factor = where(odd, one, x), sum = n + (k - one) / two, x_factor = where(odd, sum, k / two);
        Array product = last.p1 * y_factor;
        const Array p = product + last.p2 * x_factor, product_last = last.q1 * y_factor,
                    q = product_last + last.q2 * x_factor;
        const Array usable = q != zero, ratio = p / q;
        const Array change = where(usable, lax::abs((last.value - ratio) / ratio), one);
        const Array is_greater_p = lax::abs(p) > big;
        const Array scale = where(is_greater_p, one / big, one);
        return State{k,     last.p1 * scale, last.q1 * scale, p * scale, q * scale, where(usable, ratio, last.value),
                     change};
      },
      State{one, one, x, one, x + n, one / (x + n), constant(x, infinity)});
  return unpack(end).value * lax::exp(-x);
}

// The asymptotic expansion for large n.
Array expn_large(const Array& n, const Array& x) {
  const Array total = x + n, constant_x = constant(x, 1), inverse = constant_x / (total * total);
  Array product = inverse * n, product_x = constant(x, 6) * x * x, difference = product_x - constant(x, 8) * n * x;
  Array sum = product * (difference + n * n);
  sum = inverse * (sum + n * (n - constant(x, 2) * x));
  sum = inverse * (sum + n);
  Array sum_x = sum + constant(x, 1);
  return sum_x * lax::exp(-x) / total;
}

Array expn_scalar(const Array& n, const Array& x) {
  const Array zero = constant(x, 0), one = constant(x, 1), two = constant(x, 2);
  Array is_equal = n == one;
  const Array safe_n = where(is_equal, n + n, n), many = constant(x, 5000);
  // Each loop receives only arguments for which it converges; the others are replaced.
  const Array chosen = where(n >= many, one, n);
  const Array series = expn_series(chosen, where(x > one, one, x));
  const Array fraction = expn_fraction(n, where(x > one, x, two));
  Array is_less = n < zero, either = is_less | (x < zero), constant_x = constant(x, not_a_number);
  Array is_equal_x = x == zero, both = is_equal_x & (n < two), constant_value = constant(x, infinity);
  Array first_is_equal = x == zero, first_both = first_is_equal & (n >= two), quotient = one / safe_n;
  Array is_equal_n = n == zero;
  return piecewise(series, {{either, constant_x},
                            {both, constant_value},
                            {first_both, quotient},
                            {is_equal_n & (x >= zero), lax::exp(-x) / x},
                            {n >= many, expn_large(n, x)},
                            {x > one, fraction}});
}

Array strong(const Array& x) { return lax::convert_element_type(x, x.dtype(), false); }

// ---- sine and cosine integrals --------------------------------------------------------------------------------------

TwoArrays sici_near(const Array& x) {
  const Array t = x * x;
  const Array product =
      x * polynomial(t, {-8.39167827910303881427e-11, 4.62591714427012837309e-8, -9.75759303843632795789e-6,
                         9.76945438170435310816e-4, -4.13470316229406538752e-2, 1.0});
  const Array si =
      product / polynomial(t, {2.03269266195951942049e-12, 1.27997891179943299903e-9, 4.41827842801218905784e-7,
                               9.96412122043875552487e-5, 1.42085239326149893930e-2, 1.0});
  const Array sum = std::numbers::egamma + lax::log(x);
  const Array product_t =
      t * polynomial(t, {2.02524002389102268789e-11, -1.35249504915790756375e-8, 3.59325051419993077021e-6,
                         -4.74007206873407909465e-4, 2.89159652607555242092e-2, -1.0});
  const Array ci =
      sum + product_t / polynomial(t, {4.07746040061880559506e-12, 3.06780997581887812692e-9, 1.23210355685883423679e-6,
                                       3.17442024775032769882e-4, 5.10028056236446052392e-2, 4.0});
  return {where(x == 0, 0.0, si), where(x == 0, -infinity, ci)};
}

// From the auxiliary functions f and g.
TwoArrays sici_middle(const Array& x) {
  const Array z = 1.0 / (x * x), sine = lax::sin(x), cosine = lax::cos(x);
  const Array polynomial_z = polynomial(
      z, {4.23612862892216586994e0, 5.45937717161812843388e0, 1.62083287701538329132e0, 1.67006611831323023771e-1,
          6.81020132472518137426e-3, 1.08936580650328664411e-4, 5.48900223421373614008e-7});
  const Array f4 =
      polynomial_z / (x * polynomial(z, {1.0, 8.16496634205391016773e0, 7.30828822505564552187e0,
                                         1.86792257950184183883e0, 1.78792052963149907262e-1, 7.01710668322789753610e-3,
                                         1.10034357153915731354e-4, 5.48900252756255700982e-7}));
  const Array product =
      z * polynomial(z, {8.71001698973114191777e-2, 6.11379109952219284151e-1, 3.97180296392337498885e-1,
                         7.48527737628469092119e-2, 5.38868681462177273157e-3, 1.61999794598934024525e-4,
                         1.97963874140963632189e-6, 7.82579040744090311069e-9});
  const Array g4 =
      product / polynomial(z, {1.0, 1.64402202413355338886e0, 6.66296701268987968381e-1, 9.88771761277688796203e-2,
                               6.22396345441768420760e-3, 1.73221081474177119497e-4, 2.02659182086343991969e-6,
                               7.82579218933534490868e-9});
  const Array polynomial_value =
      polynomial(z, {4.55880873470465315206e-1, 7.13715274100146711374e-1, 1.60300158222319456320e-1,
                     1.16064229408124407915e-2, 3.49556442447859055605e-4, 4.86215430826454749482e-6,
                     3.20092790091004902806e-8, 9.41779576128512936592e-11, 9.70507110881952024631e-14});
  const Array f8 = polynomial_value / (x * polynomial(z, {1.0, 9.17463611873684053703e-1, 1.78685545332074536321e-1,
                                                          1.22253594771971293032e-2, 3.58696481881851580297e-4,
                                                          4.92435064317881464393e-6, 3.21956939101046018377e-8,
                                                          9.43720590350276732376e-11, 9.70507110881952025725e-14}));
  const Array product_z =
      z * polynomial(z, {6.97359953443276214934e-1, 3.30410979305632063225e-1, 3.84878767649974295920e-2,
                         1.71718239052347903558e-3, 3.48941165502279436777e-5, 3.47131167084116673800e-7,
                         1.70404452782044526189e-9, 3.85945925430276600453e-12, 3.14040098946363334640e-15});
  const Array g8 =
      product_z / polynomial(z, {1.0, 1.68548898811011640017e0, 4.87852258695304967486e-1, 4.67913194259625806320e-2,
                                 1.90284426674399523638e-3, 3.68475504442561108162e-5, 3.57043223443740838771e-7,
                                 1.72693748966316146736e-9, 3.87830166023954706752e-12, 3.14040098946363335242e-15});
  const Array near = x < 8.0, f = where(near, f4, f8), g = where(near, g4, g8);
  Array difference = pi / 2 - f * cosine, difference_pi = difference - g * sine, product_f = f * sine;
  return {difference_pi, product_f - g * cosine};
}

TwoArrays sici_far(const Array& x) {
  const Array infinite = x == infinity;
  return {where(infinite, pi / 2, pi / 2 - lax::cos(x) / x), where(infinite, 0.0, lax::sin(x) / x)};
}

TwoArrays sine_and_cosine_integral(const Array& x) {
  const Array size = lax::abs(x), near = size <= 4, is_greater = size > 4, middle = is_greater & (size <= 1e9);
  const TwoArrays a = sici_near(size), b = sici_middle(size), c = sici_far(size);
  const Array si = where(near, a.first, where(middle, b.first, c.first));
  const Array ci = where(near, a.second, where(middle, b.second, c.second));
  return {lax::sign(x) * si, where(x == -infinity, not_a_number, ci)};
}

// ---- Fresnel's integrals --------------------------------------------------------------------------------------------

// sin and cos of pi x^2 / 2, after argument reduction.
TwoArrays sine_and_cosine_of_half_pi_square(const Array& signed_x) {
  const Array x = lax::abs(signed_x), s = lax::rem(x, constant(x, 2));
  const Array product = s * (x - s / 2);
  const Array r = lax::rem(product, constant(x, 2));
  const Array is_less = r<0.5, sine_lax = lax::sin(pi * r), is_greater = r> 1.5;
  const Array first_sine = lax::sin(pi * (r - 2.0));
  const Array sine = where(is_less, sine_lax, where(is_greater, first_sine, -lax::sin(pi * (r - 1.0))));
  const Array is_equal = r == 0.5, is_less_r = r < 1.0, negated = -lax::sin(pi * (r - 0.5));
  const Array cosine = where(is_equal, 0.0, where(is_less_r, negated, lax::sin(pi * (r - 1.5))));
  return {sine, cosine};
}

struct FresnelTerms {
  Array sine_near, cosine_near, f, g;
};

FresnelTerms fresnel_single(const Array& t, const Array& u) {
  return {polynomial(t, {1.647629463788700e-9, -1.522754752581096e-7, 8.424748808502400e-6, -3.120693124703272e-4,
                         7.244727626597022e-3, -9.228055941124598e-2, 5.235987735681432e-1}),
          polynomial(t, {1.416802502367354e-8, -1.157231412229871e-6, 5.387223446683264e-5, -1.604381798862293e-3,
                         2.818489036795073e-2, -2.467398198317899e-1, 9.999999760004487e-1}),
          polynomial(u, {-1.903009855649792e12, 1.355942388050252e11, -4.158143148511033e9, 7.343848463587323e7,
                         -8.732356681548485e5, 8.560515466275470e3, -1.032877601091159e2, 2.999401847870011e0}),
          polynomial(u, {-1.860843997624650e11, 1.278350673393208e10, -3.779387713202229e8, 6.492611570598858e6,
                         -7.787789623358162e4, 8.602931494734327e2, -1.493439396592284e1, 9.999841934744914e-1})};
}

FresnelTerms fresnel_double(const Array& t, const Array& u) {
  Array polynomial_t = polynomial(t, {-2.99181919401019853726e3, 7.08840045257738576863e5, -6.29741486205862506537e7,
                                      2.54890880573376359104e9, -4.42979518059697779103e10, 3.18016297876567817986e11});
  Array quotient =
      polynomial_t / polynomial(t, {1.0, 2.81376268889994315696e2, 4.55847810806532581675e4, 5.17343888770096400730e6,
                                    4.19320245898111231129e8, 2.24411795645340920940e10, 6.07366389490084639049e11});
  Array polynomial_value =
      polynomial(t, {-4.98843114573573548651e-8, 9.50428062829859605134e-6, -6.45191435683965050962e-4,
                     1.88843319396703850064e-2, -2.05525900955013891793e-1, 9.99999999999999998822e-1});
  Array quotient_t =
      polynomial_value / polynomial(t, {3.99982968972495980367e-12, 9.15439215774657478799e-10,
                                        1.25001862479598821474e-7, 1.22262789024179030997e-5, 8.68029542941784300606e-4,
                                        4.12142090722199792936e-2, 1.00000000000000000118e0});
  Array polynomial_u = polynomial(
      u, {4.21543555043677546506e-1, 1.43407919780758885261e-1, 1.15220955073585758835e-2, 3.45017939782574027900e-4,
          4.63613749287867322088e-6, 3.05568983790257605827e-8, 1.02304514164907233465e-10, 1.72010743268161828879e-13,
          1.34283276233062758925e-16, 3.76329711269987889006e-20});
  Array quotient_u =
      polynomial_u / polynomial(u, {1.0, 7.51586398353378947175e-1, 1.16888925859191382142e-1,
                                    6.44051526508858611005e-3, 1.55934409164153020873e-4, 1.84627567348930545870e-6,
                                    1.12699224763999035261e-8, 3.60140029589371370404e-11, 5.88754533621578410010e-14,
                                    4.52001434074129701496e-17, 1.25443237090011264384e-20});
  Array first_polynomial = polynomial(
      u, {5.04442073643383265887e-1, 1.97102833525523411709e-1, 1.87648584092575249293e-2, 6.84079380915393090172e-4,
          1.15138826111884280931e-5, 9.82852443688422223854e-8, 4.45344415861750144738e-10, 1.08268041139020870318e-12,
          1.37555460633261799868e-15, 8.36354435630677421531e-19, 1.86958710162783235106e-22});
  return {quotient, quotient_t, quotient_u,
          first_polynomial /
              polynomial(u, {1.0, 1.47495759925128324529e0, 3.37748989120019970451e-1, 2.53603741420338795122e-2,
                             8.14679107184306179049e-4, 1.27545075667729118702e-5, 1.04314589657571990585e-7,
                             4.60680728146520428211e-10, 1.10273215066240270757e-12, 1.38796531259578871258e-15,
                             8.39158816283118707363e-19, 1.86958710162783236342e-22})};
}

TwoArrays fresnel_integrals(const Array& signed_x) {
  const bool is_double = signed_x.dtype() == DType::float64;
  const Array x = lax::abs(signed_x), squared = x * x, inverse = 1.0 / (pi * squared);
  const Array t = squared * squared, product = pi * squared, u = 1.0 / (product * (pi * squared));
  const FresnelTerms terms = is_double ? fresnel_double(t, u) : fresnel_single(t, u);
  const auto [sine, cosine] = sine_and_cosine_of_half_pi_square(x);
  const Array f = 1.0 - u * terms.f, g = inverse * terms.g, scale = pi * x;
  const Array near = squared<2.5625, far = x> 36974.0, infinite = x == infinity;
  const Array s_far = is_double ? 0.5 - 1 / scale * cosine : Array(0.5);
  const Array c_far = is_double ? 0.5 + 1 / scale * sine : Array(0.5);
  Array product_f = f * cosine;
  const Array s_middle = 0.5 - (product_f + g * sine) / scale, first_product = f * sine,
              c_middle = 0.5 + (first_product - g * cosine) / scale;
  const Array s_near = x * squared * terms.sine_near;
  const Array s = where(infinite, 0.5, where(near, s_near, where(far, s_far, s_middle)));
  const Array c_near = x * terms.cosine_near;
  const Array c = where(infinite, 0.5, where(near, c_near, where(far, c_far, c_middle)));
  const Array negative = signed_x < 0.0;
  return {where(negative, -s, s), where(negative, -c, c)};
}

// ---- Spence's function ----------------------------------------------------------------------------------------------

Array spence_between(const Array& x_in) {
  const Array above_2 = x_in > 2.0, x = where(above_2, 1.0 / x_in, x_in);
  const Array above = x > 1.5, below = x < 0.5;
  const Array difference = 1.0 / x - 1.0, negated = -x;
  const Array w = where(above, difference, where(below, negated, x - 1.0));
  const Array first_negated = -w;
  const Array product =
      first_negated * polynomial(w, {4.65128586073990045278e-5, 7.31589045238094711071e-3, 1.33847639578309018650e-1,
                                     8.79691311754530315341e-1, 2.71149851196553469920e0, 4.25697156008121755724e0,
                                     3.29771340985225106936e0, 1.0});
  const Array y =
      product / polynomial(w, {6.90990488912553276999e-4, 2.54043763932544379113e-2, 2.82974860602568089943e-1,
                               1.41172597751831069617e0, 3.63800533345137075418e0, 5.03278880143316990390e0,
                               3.54771340985225096217e0, 1.0});
  const Array logarithm = lax::log(x);
  const Array reflected = where(below, pi * pi / 6 - logarithm * lax::log(1.0 - x) - y, y);
  Array either = above_2 | above;
  return where(either, -0.5 * lax::square(logarithm) - reflected, reflected);
}

}  // namespace

Array expn(const Array& n, const Array& x) {
  using Two = std::tuple<Array, Array>;
  static const auto function = [] {
    auto f = custom_jvp(
        [](Array order, Array in) {
          return map_scalars("expn", {order, in}, [](const Arrays& a) { return expn_scalar(a[0], a[1]); });
        },
        "expn");
    f.defjvp([](const Two& primals, const Two& tangents) {
      const auto& [order, in] = primals;
      Array expn_order = expn(order, in), negated = -std::get<1>(tangents);
      return Two(expn_order, negated * expn(order - constant(order, 1), in));
    });
    return f;
  }();
  const Arrays in = promote_args_inexact("expn", {n, x});
  require_real("expn", in[1]);
  Array strong_in = strong(in[0]);
  return function(strong_in, strong(in[1]));
}

Array exp1(const Array& x) {
  const Array in = promote_inexact("exp1", x);
  require_real("exp1", in);
  return expn(1, in);
}

Array expi(const Array& x) {
  static const auto function = [] {
    auto f = custom_jvp(
        [](Array in) {
          Array is_less = in < 0, negated = -exp1(-in);
          return where(is_less, negated, expi_positive(in));
        },
        "expi");
    f.defjvps([](const Array& tangent, const Array&, const Array& in) { return lax::exp(in) / in * tangent; });
    return f;
  }();
  const Array in = promote_inexact("expi", x);
  require_real("expi", in);
  return function(in);
}

TwoArrays sici(const Array& x) {
  static const auto function = [] {
    auto f = custom_jvp([](Array in) { return sine_and_cosine_integral(in); }, "sici");
    f.defjvp([](const std::tuple<Array>& primals, const std::tuple<Array>& tangents) {
      const Array &in = std::get<0>(primals), &tangent = std::get<0>(tangents);
      // The limit of sin(x) / x at 0 is 1.
      const Array is_equal = in == 0;
      const Array safe = where(is_equal, lax::full_like(in, 1), in);
      const Array is_equal_in = in == 0, constant_in = constant(in, 1);
      const Array sinc = where(is_equal_in, constant_in, lax::sin(safe) / safe);
      auto sici_in = sici(in);
      Array product = sinc * tangent;
      return std::tuple<TwoArrays, TwoArrays>(sici_in, TwoArrays(product, lax::cos(in) / in * tangent));
    });
    return f;
  }();
  const Array in = promote_inexact("sici", x);
  require_real("sici", in);
  return function(strong(in));
}

TwoArrays fresnel(const Array& x) {
  static const auto function = [] {
    auto f = custom_jvp([](Array in) { return fresnel_integrals(in); }, "fresnel");
    f.defjvp([](const std::tuple<Array>& primals, const std::tuple<Array>& tangents) {
      const Array &in = std::get<0>(primals), &tangent = std::get<0>(tangents);
      const auto [sine, cosine] = sine_and_cosine_of_half_pi_square(in);
      auto fresnel_in = fresnel(in);
      Array product = sine * tangent;
      return std::tuple<TwoArrays, TwoArrays>(fresnel_in, TwoArrays(product, cosine * tangent));
    });
    return f;
  }();
  const Array in = strong(promote_inexact("fresnel", x));
  const DType dtype = in.dtype();
  if (is_complex(dtype) || bits(dtype) < 16) {
    throw NotImplementedError(
        concat("fresnel: real numbers of at least 16 bits are needed, got ", to_string(in.type())));
  }
  if (bits(dtype) > 16) return function(in);
  const auto [s, c] = function(lax::convert_element_type(in, DType::float32, false));
  return {lax::convert_element_type(s, dtype, false), lax::convert_element_type(c, dtype, false)};
}

Array spence(const Array& x) {
  if (x.dtype() != DType::float32 && x.dtype() != DType::float64) {
    throw TypeError(concat("spence: float32 or float64 is needed, got ", to_string(x.type())));
  }
  // Outside the domain of log(x), no derivative is propagated.
  const Array is_greater = x > 0.0;
  const Array inside = is_greater & (x != 1.0);
  Array spence_between_inside = spence_between(where(inside, x, lax::stop_gradient(x)));
  return piecewise(
      spence_between_inside,
      {{x < 0.0, constant(x, not_a_number)}, {x == 1.0, constant(x, 0)}, {x == 0.0, constant(x, pi * pi / 6)}});
}

}  // namespace capibara::jax::scipy::special
