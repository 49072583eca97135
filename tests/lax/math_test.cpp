// The elementwise numerics against math_cases.txt, which make_math_cases.py writes from jax and mpmath.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "data/recordings.h"
#include "lax/math/denormals.h"
#include "lax/math/math.h"

namespace capibara::math {
namespace {

struct Case {
  std::vector<std::uint64_t> arguments, results, rest;
  bool has_rest = false;
};

struct Function {
  std::string name, dtype;
  std::vector<Case> cases;
};

Case parse_case(const std::string& line) {
  Case result;
  std::istringstream words(line);
  std::vector<std::uint64_t>* list = &result.arguments;
  for (std::string word; words >> word;) {
    if (word == "=") {
      list = &result.results;
    } else if (word == "~" || word == ";") {
      list = &result.rest;
      result.has_rest = true;
    } else {
      list->push_back(std::strtoull(word.c_str(), nullptr, 16));
    }
  }
  return result;
}

const std::vector<Function>& functions() {
  static const std::vector<Function> all = [] {
    std::vector<Function> result;
    std::ifstream file(oracle::recording("math_cases.txt"));
    for (std::string line; std::getline(file, line);) {
      if (line.empty() || line[0] == '#') continue;
      if (line.find('=') == std::string::npos) {
        result.push_back({line.substr(0, line.find(' ')), line.substr(line.find(' ') + 1), {}});
      } else {
        result.back().cases.push_back(parse_case(line));
      }
    }
    return result;
  }();
  return all;
}

std::vector<const Function*> functions_of(const std::string& dtype) {
  std::vector<const Function*> result;
  for (const Function& function : functions()) {
    if (function.dtype == dtype) result.push_back(&function);
  }
  return result;
}

template <class T>
T from_bits(std::uint64_t bits) {
  return std::bit_cast<T>(static_cast<detail::BitsOf<T>>(bits));
}

// jax has no denormals.
template <class T>
T flushed(T x) {
  return std::fabs(x) < std::numeric_limits<T>::min() ? std::copysign(T(0), x) : x;
}

template <class T>
double ulp_of(T size) {
  size = std::max(std::fabs(size), std::numeric_limits<T>::min());
  return static_cast<double>(std::nextafter(size, std::numeric_limits<T>::infinity())) - static_cast<double>(size);
}

constexpr double never = 1e30;

// Distance in ULP of max(|expected|, floor); `never` if only one is NaN or infinite, or zeros differ in sign.
template <class T>
double distance(T got, T expected, T floor) {
  got = flushed(got);
  expected = flushed(expected);
  if (std::isnan(got) || std::isnan(expected)) return std::isnan(got) == std::isnan(expected) ? 0 : never;
  if (std::isinf(got) || std::isinf(expected)) return got == expected ? 0 : never;
  if (got == 0 && expected == 0 && floor == 0) return std::signbit(got) == std::signbit(expected) ? 0 : never;
  return std::fabs(static_cast<double>(got) - static_cast<double>(expected)) /
         ulp_of(std::max(std::fabs(expected), floor));
}

// Maximum differences in ULP of max(|expected|, floor): from jax in float32 and float64, from the truth in float64.
struct Allowed {
  double single, twice, truth;
  double floor = 0;
};

const std::map<std::string, Allowed>& allowed() {
  static const std::map<std::string, Allowed> table = {
      // Directly from libm, whose last digit depends on the machine.
      {"sin", {1, 1, 0}},
      {"cos", {1, 1, 0}},
      {"tan", {1, 1, 0}},
      {"cbrt", {1, 2, 0}},  // correctly rounded here; jax is off by up to 1.5 units
      {"atan2", {1, 1, 0}},
      {"pow", {1, 1, 0}},
      {"asin", {1, 1, 2}},
      {"acos", {1, 1, 2}},
      {"atan", {8, 2, 2}},    // jax's float32 atan is the identity below 0.001
      {"sinh", {0, 0, 512}},  // (x - log 2) loses digits before exp does
      {"cosh", {0, 0, 512}},
      {"asinh", {0, 0, 2}},
      {"acosh", {0, 0, 2}},
      {"atanh", {0, 0, 64}},
      {"erf", {0, 1, 1}},
      {"erfc", {2, 2, 64}},
      {"erf_inv", {1, 1, 16}},
      {"lgamma", {16, 16, 16, 1}},
      {"digamma", {8, 8, 16, 1}},
      {"bessel_i0e", {2, 2, 4}},
      {"bessel_i1e", {2, 2, 4}},
      {"zeta", {2, 2, 2e5}},  // ten powers are too few for large x and q
      {"polygamma", {8, 8, 128}},
      {"igamma", {256, 512, 1024}},
      {"igammac", {256, 256, 8192}},
      {"igamma_grad_a", {512, 128, 0}},
      {"random_gamma_grad", {32, 128, 0}},
      {"betainc", {1024, 4096, 256}},  // jax's logarithms of gamma cancel
  };
  return table;
}

template <class T>
using RealFunction = std::function<T(const std::vector<T>&)>;

template <class T>
std::map<std::string, RealFunction<T>> real_functions() {
  using A = const std::vector<T>&;
  return {
      {"exp", [](A a) { return exp(a[0]); }},
      {"exp2", [](A a) { return exp2(a[0]); }},
      {"expm1", [](A a) { return expm1(a[0]); }},
      {"log", [](A a) { return log(a[0]); }},
      {"log1p", [](A a) { return log1p(a[0]); }},
      {"tanh", [](A a) { return tanh(a[0]); }},
      {"sin", [](A a) { return sin(a[0]); }},
      {"cos", [](A a) { return cos(a[0]); }},
      {"tan", [](A a) { return tan(a[0]); }},
      {"sqrt", [](A a) { return sqrt(a[0]); }},
      {"rsqrt", [](A a) { return rsqrt(a[0]); }},
      {"cbrt", [](A a) { return cbrt(a[0]); }},
      {"floor", [](A a) { return floor(a[0]); }},
      {"ceil", [](A a) { return ceil(a[0]); }},
      {"round", [](A a) { return round(a[0]); }},
      {"round_nearest_even", [](A a) { return round_nearest_even(a[0]); }},
      {"logistic", [](A a) { return logistic(a[0]); }},
      {"sign", [](A a) { return sign(a[0]); }},
      {"asin", [](A a) { return asin(a[0]); }},
      {"acos", [](A a) { return acos(a[0]); }},
      {"atan", [](A a) { return atan(a[0]); }},
      {"sinh", [](A a) { return sinh(a[0]); }},
      {"cosh", [](A a) { return cosh(a[0]); }},
      {"asinh", [](A a) { return asinh(a[0]); }},
      {"acosh", [](A a) { return acosh(a[0]); }},
      {"atanh", [](A a) { return atanh(a[0]); }},
      {"erf", [](A a) { return erf(a[0]); }},
      {"erfc", [](A a) { return erfc(a[0]); }},
      {"erf_inv", [](A a) { return erf_inv(a[0]); }},
      {"lgamma", [](A a) { return lgamma(a[0]); }},
      {"digamma", [](A a) { return digamma(a[0]); }},
      {"bessel_i0e", [](A a) { return bessel_i0e(a[0]); }},
      {"bessel_i1e", [](A a) { return bessel_i1e(a[0]); }},
      {"atan2", [](A a) { return atan2(a[0], a[1]); }},
      {"pow", [](A a) { return pow(a[0], a[1]); }},
      {"rem", [](A a) { return rem(a[0], a[1]); }},
      {"maximum", [](A a) { return maximum(a[0], a[1]); }},
      {"minimum", [](A a) { return minimum(a[0], a[1]); }},
      {"nextafter", [](A a) { return nextafter(a[0], a[1]); }},
      {"zeta", [](A a) { return zeta(a[0], a[1]); }},
      {"polygamma", [](A a) { return polygamma(a[0], a[1]); }},
      {"igamma", [](A a) { return igamma(a[0], a[1]); }},
      {"igammac", [](A a) { return igammac(a[0], a[1]); }},
      {"igamma_grad_a", [](A a) { return igamma_grad_a(a[0], a[1]); }},
      {"random_gamma_grad", [](A a) { return random_gamma_grad(a[0], a[1]); }},
      {"betainc", [](A a) { return regularized_incomplete_beta(a[0], a[1], a[2]); }},
  };
}

// "integer_pow-3" and "reduce_precision_5_10" carry their parameters in the name.
std::vector<int> numbers_in(const std::string& name, const std::string& prefix) {
  std::vector<int> result;
  std::string rest = name.substr(prefix.size());
  std::replace(rest.begin(), rest.end(), '_', ' ');
  std::replace(rest.begin(), rest.end(), 'x', ' ');
  std::istringstream words(rest);
  for (int number; words >> number;) result.push_back(number);
  return result;
}

template <class T>
RealFunction<T> real_function(const std::string& name) {
  static const auto table = real_functions<T>();
  if (auto found = table.find(name); found != table.end()) return found->second;
  if (name.starts_with("integer_pow")) {
    int power = numbers_in(name, "integer_pow")[0];
    return [power](const std::vector<T>& a) { return integer_pow(a[0], power, T(1)); };
  }
  if (name.starts_with("reduce_precision_")) {
    auto width = numbers_in(name, "reduce_precision_");
    return [width](const std::vector<T>& a) { return reduce_precision(a[0], width[0], width[1]); };
  }
  return nullptr;
}

template <class T>
void check_real(const std::string& dtype) {
  auto chosen = functions_of(dtype);
  ASSERT_FALSE(chosen.empty()) << oracle::recording("math_cases.txt") << " was not found";
  for (const Function* function : chosen) {
    auto evaluate = real_function<T>(function->name);
    ASSERT_TRUE(evaluate) << function->name;
    auto entry = allowed().find(function->name);
    Allowed limit = entry == allowed().end() ? Allowed{0, 0, 0} : entry->second;
    double from_jax = 0, from_truth = 0;
    std::string worst, worst_truth;
    for (const Case& one : function->cases) {
      std::vector<T> arguments;
      for (std::uint64_t word : one.arguments) arguments.push_back(from_bits<T>(word));
      T got = evaluate(arguments), expected = from_bits<T>(one.results[0]);
      std::ostringstream text;
      text.precision(17);
      for (T argument : arguments) text << argument << ' ';
      double away = distance<T>(got, expected, static_cast<T>(limit.floor));
      text << "gives " << got << ", jax " << expected;
      if (away > from_jax) from_jax = away, worst = text.str();
      if (one.has_rest) {
        T truth = from_bits<T>(one.rest[0]);
        away = distance<T>(got, truth, static_cast<T>(limit.floor));
        text << ", truth " << truth;
        if (away > from_truth) from_truth = away, worst_truth = text.str();
      }
    }
    EXPECT_LE(from_jax, sizeof(T) == 4 ? limit.single : limit.twice)
        << function->name << "(" << dtype << ") at " << worst;
    EXPECT_LE(from_truth, limit.truth) << function->name << "(" << dtype << ") at " << worst_truth;
  }
}

TEST(Math, RealFunctionsAreJaxsInFloat32) { check_real<float>("float32"); }
TEST(Math, RealFunctionsAreJaxsInFloat64) { check_real<double>("float64"); }

template <class T>
std::map<std::string, std::function<Complex<T>(const std::vector<Complex<T>>&)>> complex_functions() {
  using A = const std::vector<Complex<T>>&;
  auto truth = [](bool value) { return Complex<T>{T(value), T(0)}; };
  return {
      {"exp", [](A a) { return exp(a[0]); }},
      {"exp2", [](A a) { return exp2(a[0]); }},
      {"expm1", [](A a) { return expm1(a[0]); }},
      {"log", [](A a) { return log(a[0]); }},
      {"log1p", [](A a) { return log1p(a[0]); }},
      {"logistic", [](A a) { return logistic(a[0]); }},
      {"sqrt", [](A a) { return sqrt(a[0]); }},
      {"rsqrt", [](A a) { return rsqrt(a[0]); }},
      {"tanh", [](A a) { return tanh(a[0]); }},
      {"tan", [](A a) { return tan(a[0]); }},
      {"sin", [](A a) { return sin(a[0]); }},
      {"cos", [](A a) { return cos(a[0]); }},
      {"sinh", [](A a) { return sinh(a[0]); }},
      {"cosh", [](A a) { return cosh(a[0]); }},
      {"asin", [](A a) { return asin(a[0]); }},
      {"acos", [](A a) { return acos(a[0]); }},
      {"atan", [](A a) { return atan(a[0]); }},
      {"asinh", [](A a) { return asinh(a[0]); }},
      {"acosh", [](A a) { return acosh(a[0]); }},
      {"atanh", [](A a) { return atanh(a[0]); }},
      {"sign", [](A a) { return sign(a[0]); }},
      {"abs",
       [](A a) {
         return Complex<T>{abs(a[0]), T(0)};
       }},
      {"square", [](A a) { return square(a[0]); }},
      {"divide", [](A a) { return a[0] / a[1]; }},
      {"multiply", [](A a) { return a[0] * a[1]; }},
      {"pow", [](A a) { return pow(a[0], a[1]); }},
      {"maximum", [](A a) { return maximum(a[0], a[1]); }},
      {"minimum", [](A a) { return minimum(a[0], a[1]); }},
      {"lt", [=](A a) { return truth(lt(a[0], a[1])); }},
      {"le", [=](A a) { return truth(le(a[0], a[1])); }},
      {"gt", [=](A a) { return truth(gt(a[0], a[1])); }},
      {"ge", [=](A a) { return truth(ge(a[0], a[1])); }},
      {"eq", [=](A a) { return truth(eq(a[0], a[1])); }},
      {"ne", [=](A a) { return truth(ne(a[0], a[1])); }},
  };
}

// Both parts are measured in ULP of the larger one: the smaller may cancel.
template <class T>
void check_complex(const std::string& dtype, double limit) {
  static const auto table = complex_functions<T>();
  for (const Function* function : functions_of(dtype)) {
    auto found = table.find(function->name);
    ASSERT_NE(found, table.end()) << function->name;
    double largest = 0;
    int differing = 0;
    std::string worst;
    for (const Case& one : function->cases) {
      std::vector<Complex<T>> arguments;
      for (std::size_t i = 0; i + 1 < one.arguments.size(); i += 2) {
        arguments.push_back({from_bits<T>(one.arguments[i]), from_bits<T>(one.arguments[i + 1])});
      }
      Complex<T> got = found->second(arguments), expected{T(0), T(0)};
      bool is_truth = function->name.size() == 2;
      expected.real = is_truth ? T(one.results[0]) : from_bits<T>(one.results[0]);
      if (one.results.size() > 1) expected.imag = from_bits<T>(one.results[1]);
      T size = std::max(std::isfinite(expected.real) ? std::fabs(expected.real) : T(0),
                        std::isfinite(expected.imag) ? std::fabs(expected.imag) : T(0));
      double away = std::max(distance(got.real, expected.real, size), distance(got.imag, expected.imag, size));
      differing += away >= never;
      std::ostringstream text;
      text.precision(9);
      for (const auto& argument : arguments) text << '(' << argument.real << ',' << argument.imag << ") ";
      text << "gives (" << got.real << ',' << got.imag << "), jax (" << expected.real << ',' << expected.imag << ')';
      if (away > largest) largest = away, worst = text.str();
    }
    EXPECT_LE(largest, limit) << function->name << "(" << dtype << "), " << differing << " of other kind, at " << worst;
  }
}

TEST(Math, ComplexFunctionsAreJaxsInComplex64) { check_complex<float>("complex64", 4); }
TEST(Math, ComplexFunctionsAreJaxsInComplex128) { check_complex<double>("complex128", 4); }

template <class T>
T integer_function(const std::string& name, T x, T y) {
  if (name == "integer_div") return integer_div(x, y);
  if (name == "integer_rem") return integer_rem(x, y);
  if (name == "multiply_high") return multiply_high(x, y);
  if (name == "shift_left") return shift_left(x, y);
  if (name == "shift_right_logical") return shift_right_logical(x, y);
  if (name == "shift_right_arithmetic") return shift_right_arithmetic(x, y);
  if (name == "population_count") return population_count(x);
  if (name == "count_leading_zeros") return count_leading_zeros(x);
  if (name == "integer_sign") return integer_sign(x);
  if constexpr (std::is_signed_v<T>) {
    if (name == "integer_abs") return integer_abs(x);
  }
  ADD_FAILURE() << name;
  return 0;
}

template <class T>
void check_integers(const std::string& dtype) {
  for (const Function* function : functions_of(dtype)) {
    if (function->name.find(':') != std::string::npos) continue;
    for (const Case& one : function->cases) {
      T x = static_cast<T>(one.arguments[0]), y = one.arguments.size() > 1 ? static_cast<T>(one.arguments[1]) : T(0);
      EXPECT_EQ(+integer_function(function->name, x, y), +static_cast<T>(one.results[0]))
          << function->name << "(" << dtype << ") of " << +x << " and " << +y;
    }
  }
}

TEST(Math, IntegerCornersAreJaxs) {
  check_integers<std::int8_t>("int8");
  check_integers<std::uint8_t>("uint8");
  check_integers<std::int16_t>("int16");
  check_integers<std::uint16_t>("uint16");
  check_integers<std::int32_t>("int32");
  check_integers<std::uint32_t>("uint32");
  check_integers<std::int64_t>("int64");
  check_integers<std::uint64_t>("uint64");
}

TEST(Math, IntegerPowerWrapsAndNegativePowersVanish) {
  EXPECT_EQ(integer_power<std::int32_t>(3, 5), 243);
  EXPECT_EQ(integer_power<std::int32_t>(2, 40), 0);
  EXPECT_EQ(integer_power<std::int8_t>(-1, -3), -1);
  EXPECT_EQ(integer_power<std::int8_t>(1, -3), 1);
  EXPECT_EQ(integer_power<std::int8_t>(2, -1), 0);
  EXPECT_EQ(integer_power<std::uint16_t>(65535, 2), 1);
  EXPECT_EQ(integer_power<std::uint8_t>(3, 0), 1);
}

void check_half_bits(const std::string& dtype, FloatLayout layout) {
  for (const Function* function : functions_of(dtype)) {
    for (const Case& one : function->cases) {
      auto x = static_cast<std::uint16_t>(one.arguments[0]), expected = static_cast<std::uint16_t>(one.results[0]);
      std::uint16_t got = 0;
      if (function->name == "nextafter") {
        got = next_after_bits(x, static_cast<std::uint16_t>(one.arguments[1]), layout);
      } else {
        auto width = numbers_in(function->name, "reduce_precision_");
        got = reduce_precision_bits(x, layout, width[0], width[1]);
      }
      bool both_nan = detail::bits_are_nan(got, layout) && detail::bits_are_nan(expected, layout);
      EXPECT_TRUE(got == expected || both_nan)
          << function->name << "(" << dtype << ") of " << std::hex << x << ": " << got << ", jax " << expected;
    }
  }
}

TEST(Math, NextAfterAndReducePrecisionOfHalfTypesAreJaxs) {
  check_half_bits("float16", float16_layout);
  check_half_bits("bfloat16", bfloat16_layout);
}

TEST(Math, FlushDenormalsLastsForItsScope) {
  volatile float tiny = 1e-40f, one = 1.0f;
  EXPECT_NE(tiny * one, 0.0f);
  {
    FlushDenormals scope;
    EXPECT_EQ(tiny * one, 0.0f);
  }
  EXPECT_NE(tiny * one, 0.0f);
}

TEST(Math, ThreefryMatchesThePublishedVectors) {
  using Pair = std::array<std::uint32_t, 2>;
  EXPECT_EQ(threefry2x32<std::uint32_t>({0, 0}, {0, 0}), (Pair{0x6b200159u, 0x99ba4efeu}));
  EXPECT_EQ(threefry2x32<std::uint32_t>({~0u, ~0u}, {~0u, ~0u}), (Pair{0x1cb996fcu, 0xbb002be7u}));
  EXPECT_EQ(threefry2x32<std::uint32_t>({0x13198a2eu, 0x03707344u}, {0x243f6a88u, 0x85a308d3u}),
            (Pair{0xc4923a9cu, 0x483df7a0u}));
}

TEST(Math, BitGeneratorsAreJaxsBitwise) {
  int checked = 0;
  for (const Function& function : functions()) {
    std::size_t colon = function.name.find(':');
    if (colon == std::string::npos) continue;
    std::string algorithm = function.name.substr(0, colon);
    int bits = std::stoi(function.dtype.substr(4));
    std::vector<std::int64_t> shape;
    std::size_t count = 1;
    for (int size : numbers_in(function.name, function.name.substr(0, colon + 1))) {
      shape.push_back(size);
      count *= static_cast<std::size_t>(size);
    }
    for (const Case& one : function.cases) {
      std::vector<std::uint64_t> state = one.arguments;
      auto bytes = algorithm == "threefry" ? threefry_bits(state, shape, bits) : philox_bits(state, count, bits);
      EXPECT_EQ(state, one.results) << function.name << ' ' << function.dtype;
      std::vector<std::uint64_t> elements(count);
      std::size_t width = static_cast<std::size_t>(bits) / 8;
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        elements[i / width] |= static_cast<std::uint64_t>(bytes[i]) << (8 * (i % width));
      }
      EXPECT_EQ(elements, one.rest) << function.name << ' ' << function.dtype;
      ++checked;
    }
  }
  EXPECT_GT(checked, 100);
}

TEST(Math, PhiloxWithThreeWordsCarriesIntoTheThird) {
  std::vector<std::uint64_t> state = {1 | std::uint64_t{2} << 32, ~std::uint64_t{0}, 7};
  auto bytes = philox_bits(state, 8, 32);
  std::vector<std::uint64_t> moved = {1 | std::uint64_t{2} << 32, 1, 8};
  EXPECT_EQ(state, moved);
  auto word = [&](std::size_t i) {
    std::uint32_t value = 0;
    for (std::size_t b = 0; b < 4; ++b) value |= static_cast<std::uint32_t>(bytes[4 * i + b]) << (8 * b);
    return value;
  };
  EXPECT_EQ(word(0), 3801257732u);
  EXPECT_EQ(word(7), 493017535u);
}

}  // namespace
}  // namespace capibara::math
