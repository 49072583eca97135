// Every operation of the loop form on every type, at values that expose mistakes, one at a time and in lanes.
#include "backends/cpu/generated_code.h"

namespace capibara::cpu {
namespace {

template <class T>
std::vector<T> hard_values() {
  if constexpr (std::is_same_v<T, Bit>) {
    return {{0}, {1}, {1}, {0}, {1}};
  } else if constexpr (std::is_floating_point_v<T>) {
    using L = std::numeric_limits<T>;
    return {T(0),          -T(0),          T(1),           T(-1),           T(0.5),           T(-0.5),
            T(1.5),        T(2.5),         T(-2.5),        T(3.7),          T(-3.7),          L::min(),
            -L::min(),     L::max(),       L::lowest(),    L::denorm_min(), -L::denorm_min(), L::min() / 4,
            L::infinity(), -L::infinity(), L::quiet_NaN(), T(127.5),        T(-128.9),        T(255.9),
            T(32767.5),    T(65504),       T(65520),       T(2147483520.0), T(-2147483648.0), T(4294967040.0),
            T(9.3e18),     T(-9.3e18),     T(1.9e19),      T(1e-3),         T(123456.789),    T(8388607.5),
            T(16777217.0)};
  } else {
    using L = std::numeric_limits<T>;
    std::vector<T> values{0,
                          1,
                          -1,
                          2,
                          3,
                          7,
                          -7,
                          100,
                          -100,
                          L::max(),
                          L::min(),
                          static_cast<T>(L::max() - 1),
                          static_cast<T>(L::min() + 1)};
    if constexpr (sizeof(T) >= 4) values.insert(values.end(), {16777217, 2147483583, -16777219});
    if constexpr (sizeof(T) == 8) {
      values.push_back((int64_t{1} << 62) + (int64_t{1} << 38) + 1);  // rounds differently to f32 through f64
      values.push_back((int64_t{1} << 53) + 1);
      values.push_back(-((int64_t{1} << 53) + 3));
    }
    return values;
  }
}

struct Operand {
  Scalar type;
  const void* data;
};

// out[i] = body(operands[i]...) for all i.
void elementwise(int64_t n, const std::vector<Operand>& operands, Scalar out_type, void* out, bool lanes,
                 const std::function<Value(Builder&, std::span<const Value>)>& body) {
  Module module = module_with();
  Builder builder(module.functions[0]);
  std::vector<void*> buffers;
  for (const Operand& operand : operands) {
    builder.parameter(n * byte_size(operand.type), false);
    buffers.push_back(const_cast<void*>(operand.data));
  }
  int32_t result = builder.parameter(n * byte_size(out_type), true);
  buffers.push_back(out);
  builder.loop(n, {.lanes = lanes}, {}, [&](Value i, std::span<const Value>) {
    std::vector<Value> values;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      values.push_back(builder.load(operands[k].type, {static_cast<int32_t>(k), 0, {{i, 1}}}));
    }
    builder.store(body(builder, values), {result, 0, {{i, 1}}});
    return std::vector<Value>{};
  });
  run(module, buffers);
}

template <class R, class... A, class Expected>
void check(const char* name, const std::function<Value(Builder&, std::span<const Value>)>& body, Expected&& expected,
           const std::vector<A>&... operands) {
  const std::size_t n = std::get<0>(std::tie(operands...)).size();
  for (bool lanes : {false, true}) {
    std::vector<R> out(n);
    elementwise(static_cast<int64_t>(n), {Operand{scalar_of<A>(), operands.data()}...}, scalar_of<R>(), out.data(),
                lanes, body);
    for (std::size_t i = 0; i < n; ++i) {
      R wanted = expected(operands[i]...);
      ASSERT_TRUE(same(out[i], wanted)) << name << (lanes ? " in lanes" : "") << " of "
                                        << ((shown(operands[i]) + " ") + ...) << ": got " << shown(out[i])
                                        << ", wanted " << shown(wanted);
    }
  }
}

template <class T>
std::pair<std::vector<T>, std::vector<T>> pairs() {
  std::pair<std::vector<T>, std::vector<T>> result;
  for (T a : hard_values<T>()) {
    for (T b : hard_values<T>()) {
      result.first.push_back(a);
      result.second.push_back(b);
    }
  }
  return result;
}

template <class T, class R = T, class Expected>
void unary(const char* name, Op op, Expected&& expected, std::vector<T> values = hard_values<T>()) {
  check<R>(
      name, [=](Builder& b, std::span<const Value> v) { return b.compute(op, v[0]); }, expected, values);
}

template <class T, class R = T, class Expected>
void binary(const char* name, Op op, Expected&& expected) {
  auto [left, right] = pairs<T>();
  check<R>(
      name, [=](Builder& b, std::span<const Value> v) { return b.compute(op, v[0], v[1]); }, expected, left, right);
}

template <class T, class Expected>
void comparison(const char* name, Op op, Expected&& expected) {
  binary<T, Bit>(name, op, [=](T a, T b) { return Bit{expected(a, b)}; });
}

template <class T>
class Floats : public ::testing::Test {};
using FloatTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Floats, FloatTypes);

TYPED_TEST(Floats, Arithmetic) {
  NEEDS_COMPILER();
  using T = TypeParam;
  binary<T>("add", Op::add, [](T a, T b) { return a + b; });
  binary<T>("sub", Op::sub, [](T a, T b) { return a - b; });
  binary<T>("mul", Op::mul, [](T a, T b) { return a * b; });
  binary<T>("div", Op::div, [](T a, T b) { return a / b; });
  binary<T>("copysign", Op::copysign, [](T a, T b) { return std::copysign(a, b); });
  unary<T>("neg", Op::neg, [](T a) { return -a; });
  unary<T>("abs", Op::abs, [](T a) { return std::fabs(a); });
  unary<T>("sqrt", Op::sqrt, [](T a) { return std::sqrt(a); });
  unary<T>("floor", Op::floor, [](T a) { return std::floor(a); });
  unary<T>("ceil", Op::ceil, [](T a) { return std::ceil(a); });
  unary<T>("truncate", Op::truncate, [](T a) { return std::trunc(a); });
  unary<T>("round_even", Op::round_even, [](T a) { return std::nearbyint(a); });
  auto [left, right] = pairs<T>();
  check<T>(
      "fma", [](Builder& b, std::span<const Value> v) { return b.compute(Op::fma, v[0], v[1], v[0]); },
      [](T a, T b) { return std::fma(a, b, a); }, left, right);
}

TYPED_TEST(Floats, MinimumAndMaximumLetNanWinAndOrderZeros) {
  NEEDS_COMPILER();
  using T = TypeParam;
  auto choose = [](bool less, T a, T b) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    if (a == b) return std::signbit(a) == less ? a : b;
    return (a < b) == less ? a : b;
  };
  binary<T>("minimum", Op::minimum, [=](T a, T b) { return choose(true, a, b); });
  binary<T>("maximum", Op::maximum, [=](T a, T b) { return choose(false, a, b); });
}

TYPED_TEST(Floats, Comparisons) {
  NEEDS_COMPILER();
  using T = TypeParam;
  comparison<T>("eq", Op::eq, [](T a, T b) { return a == b; });
  comparison<T>("ne", Op::ne, [](T a, T b) { return a != b; });
  comparison<T>("lt", Op::lt, [](T a, T b) { return a < b; });
  comparison<T>("le", Op::le, [](T a, T b) { return a <= b; });
  comparison<T>("gt", Op::gt, [](T a, T b) { return a > b; });
  comparison<T>("ge", Op::ge, [](T a, T b) { return a >= b; });
}

TYPED_TEST(Floats, ProductsJoinSumsInOneRounding) {
  NEEDS_FMA();
  using T = TypeParam;
  auto [left, right] = pairs<T>();
  auto product = [](Builder& b, std::span<const Value> v) { return b.compute(Op::mul, v[0], v[1]); };
  check<T>(
      "a*b+a", [&](Builder& b, auto v) { return b.compute(Op::add, product(b, v), v[0]); },
      [](T a, T b) { return std::fma(a, b, a); }, left, right);
  check<T>(
      "a*b-a", [&](Builder& b, auto v) { return b.compute(Op::sub, product(b, v), v[0]); },
      [](T a, T b) { return std::fma(a, b, -a); }, left, right);
  check<T>(
      "b-a*b", [&](Builder& b, auto v) { return b.compute(Op::sub, v[1], product(b, v)); },
      [](T a, T b) { return std::fma(-a, b, b); }, left, right);
  check<T>(
      "a*b+a*b",
      [&](Builder& b, auto v) {
        Value p = product(b, v);
        return b.compute(Op::add, p, p);
      },
      [](T a, T b) { return a * b + a * b; }, left, right);
}

template <class T, class F>
T saturated(F value) {
  if (std::isnan(value)) return 0;
  if (value <= static_cast<F>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (value >= static_cast<F>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

template <class F, class I>
void float_and_integer() {
  using U = std::make_unsigned_t<I>;
  auto to = [](Op op, Scalar type) {
    return [=](Builder& b, std::span<const Value> v) { return b.convert(op, type, v[0]); };
  };
  check<F>(
      "signed_to_float", to(Op::signed_to_float, scalar_of<F>()), [](I a) { return static_cast<F>(a); },
      hard_values<I>());
  check<F>(
      "unsigned_to_float", to(Op::unsigned_to_float, scalar_of<F>()),
      [](I a) { return static_cast<F>(static_cast<U>(a)); }, hard_values<I>());
  check<I>(
      "float_to_signed", to(Op::float_to_signed, scalar_of<I>()), [](F a) { return saturated<I>(a); },
      hard_values<F>());
  check<I>(
      "float_to_unsigned", to(Op::float_to_unsigned, scalar_of<I>()),
      [](F a) { return static_cast<I>(saturated<U>(a)); }, hard_values<F>());
}

TYPED_TEST(Floats, ToAndFromIntegers) {
  NEEDS_COMPILER();
  float_and_integer<TypeParam, int8_t>();
  float_and_integer<TypeParam, int16_t>();
  float_and_integer<TypeParam, int32_t>();
  float_and_integer<TypeParam, int64_t>();
}

TYPED_TEST(Floats, CallsOfTheMathLibrary) {
  NEEDS_COMPILER();
  using T = TypeParam;
  auto one = [](const char* name, Math function, T (*expected)(T)) {
    check<T>(
        name, [=](Builder& b, std::span<const Value> v) { return b.call(function, v[0]); }, expected, hard_values<T>());
  };
  one("sin", Math::sin, std::sin);
  one("cos", Math::cos, std::cos);
  one("tan", Math::tan, std::tan);
  one("asin", Math::asin, std::asin);
  one("acos", Math::acos, std::acos);
  one("atan", Math::atan, std::atan);
  one("sinh", Math::sinh, std::sinh);
  one("cosh", Math::cosh, std::cosh);
  one("asinh", Math::asinh, std::asinh);
  one("acosh", Math::acosh, std::acosh);
  one("atanh", Math::atanh, std::atanh);
  one("cbrt", Math::cbrt, std::cbrt);
  one("erf", Math::erf, std::erf);
  one("erfc", Math::erfc, std::erfc);
  one("log", Math::log, std::log);
  one("log1p", Math::log1p, std::log1p);
  one("exp", Math::exp, std::exp);
  one("expm1", Math::expm1, std::expm1);
  one("tanh", Math::tanh, std::tanh);
  one("lgamma", Math::lgamma, std::lgamma);
  one("round", Math::round, std::round);
  auto [left, right] = pairs<T>();
  auto two = [&, &left = left, &right = right](const char* name, Math function, T (*expected)(T, T)) {
    check<T>(
        name, [=](Builder& b, std::span<const Value> v) { return b.call(function, v[0], v[1]); }, expected, left,
        right);
  };
  two("atan2", Math::atan2, std::atan2);
  two("pow", Math::pow, std::pow);
  two("fmod", Math::fmod, std::fmod);
  two("nextafter", Math::nextafter, std::nextafter);
}

// Products and sums of constants must be folded to the NaN or zero that the machine produces.
TYPED_TEST(Floats, ConstantsAreRoundedToTheType) {
  NEEDS_COMPILER();
  using T = TypeParam;
  for (T constant : hard_values<T>()) {
    check<T>(
        "constant",
        [=](Builder& b, std::span<const Value> v) {
          return b.compute(Op::mul, v[0], b.constant(scalar_of<T>(), constant));
        },
        [=](T a) { return a * constant; }, hard_values<T>());
  }
}

template <class T>
class Integers : public ::testing::Test {};
using IntegerTypes = ::testing::Types<int8_t, int16_t, int32_t, int64_t>;
TYPED_TEST_SUITE(Integers, IntegerTypes);

TYPED_TEST(Integers, ArithmeticWraps) {
  NEEDS_COMPILER();
  using T = TypeParam;
  using U = std::make_unsigned_t<T>;
  binary<T>("add", Op::add,
            [](T a, T b) { return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); });
  binary<T>("sub", Op::sub,
            [](T a, T b) { return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b)); });
  binary<T>("mul", Op::mul,
            [](T a, T b) { return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)); });
  unary<T>("neg", Op::neg, [](T a) { return static_cast<T>(-static_cast<uint64_t>(a)); });
  binary<T>("bit_and", Op::bit_and, [](T a, T b) { return static_cast<T>(a & b); });
  binary<T>("bit_or", Op::bit_or, [](T a, T b) { return static_cast<T>(a | b); });
  binary<T>("bit_xor", Op::bit_xor, [](T a, T b) { return static_cast<T>(a ^ b); });
  unary<T>("population_count", Op::population_count,
           [](T a) { return static_cast<T>(std::popcount(static_cast<U>(a))); });
  unary<T>("leading_zeros", Op::leading_zeros, [](T a) { return static_cast<T>(std::countl_zero(static_cast<U>(a))); });
}

TYPED_TEST(Integers, DivisionAndShifts) {
  NEEDS_COMPILER();
  using T = TypeParam;
  using U = std::make_unsigned_t<T>;
  std::vector<T> left, right, amounts;
  auto [all_left, all_right] = pairs<T>();
  for (std::size_t i = 0; i < all_left.size(); ++i) {
    if (all_right[i] == 0 || all_right[i] == -1) continue;
    left.push_back(all_left[i]);
    right.push_back(all_right[i]);
    amounts.push_back(static_cast<T>(static_cast<U>(all_right[i]) % (8 * sizeof(T))));
  }
  auto both = [&](const char* name, Op op, const std::vector<T>& second, auto expected) {
    check<T>(
        name, [=](Builder& b, std::span<const Value> v) { return b.compute(op, v[0], v[1]); }, expected, left, second);
  };
  both("divide_signed", Op::divide_signed, right, [](T a, T b) { return static_cast<T>(a / b); });
  both("remainder_signed", Op::remainder_signed, right, [](T a, T b) { return static_cast<T>(a % b); });
  both("divide_unsigned", Op::divide_unsigned, right,
       [](T a, T b) { return static_cast<T>(static_cast<U>(a) / static_cast<U>(b)); });
  both("remainder_unsigned", Op::remainder_unsigned, right,
       [](T a, T b) { return static_cast<T>(static_cast<U>(a) % static_cast<U>(b)); });
  both("shift_left", Op::shift_left, amounts, [](T a, T b) { return static_cast<T>(static_cast<U>(a) << b); });
  both("shift_right_logical", Op::shift_right_logical, amounts,
       [](T a, T b) { return static_cast<T>(static_cast<U>(a) >> b); });
  both("shift_right_arithmetic", Op::shift_right_arithmetic, amounts, [](T a, T b) { return static_cast<T>(a >> b); });
}

TYPED_TEST(Integers, Comparisons) {
  NEEDS_COMPILER();
  using T = TypeParam;
  using U = std::make_unsigned_t<T>;
  comparison<T>("eq", Op::eq, [](T a, T b) { return a == b; });
  comparison<T>("ne", Op::ne, [](T a, T b) { return a != b; });
  comparison<T>("lt", Op::lt, [](T a, T b) { return a < b; });
  comparison<T>("le", Op::le, [](T a, T b) { return a <= b; });
  comparison<T>("gt", Op::gt, [](T a, T b) { return a > b; });
  comparison<T>("ge", Op::ge, [](T a, T b) { return a >= b; });
  comparison<T>("lt_unsigned", Op::lt_unsigned, [](T a, T b) { return static_cast<U>(a) < static_cast<U>(b); });
  comparison<T>("le_unsigned", Op::le_unsigned, [](T a, T b) { return static_cast<U>(a) <= static_cast<U>(b); });
  comparison<T>("gt_unsigned", Op::gt_unsigned, [](T a, T b) { return static_cast<U>(a) > static_cast<U>(b); });
  comparison<T>("ge_unsigned", Op::ge_unsigned, [](T a, T b) { return static_cast<U>(a) >= static_cast<U>(b); });
}

template <class From, class To>
void integer_widths() {
  auto to = [](Op op) {
    return [=](Builder& b, std::span<const Value> v) { return b.convert(op, scalar_of<To>(), v[0]); };
  };
  if constexpr (sizeof(To) > sizeof(From)) {
    check<To>(
        "sign_extend", to(Op::sign_extend), [](From a) { return static_cast<To>(a); }, hard_values<From>());
    check<To>(
        "zero_extend", to(Op::zero_extend),
        [](From a) { return static_cast<To>(static_cast<std::make_unsigned_t<From>>(a)); }, hard_values<From>());
  } else if constexpr (sizeof(To) < sizeof(From)) {
    check<To>(
        "narrow", to(Op::narrow), [](From a) { return static_cast<To>(a); }, hard_values<From>());
  }
}

TYPED_TEST(Integers, WidthsAndBits) {
  NEEDS_COMPILER();
  using T = TypeParam;
  integer_widths<T, int8_t>();
  integer_widths<T, int16_t>();
  integer_widths<T, int32_t>();
  integer_widths<T, int64_t>();
  check<Bit>(
      "to i1", [](Builder& b, std::span<const Value> v) { return b.convert(Op::narrow, Scalar::i1, v[0]); },
      [](T a) { return Bit{static_cast<uint8_t>(a & 1)}; }, hard_values<T>());
  check<T>(
      "from i1", [](Builder& b, std::span<const Value> v) { return b.convert(Op::zero_extend, scalar_of<T>(), v[0]); },
      [](Bit a) { return static_cast<T>(a.value); }, hard_values<Bit>());
}

TEST(Operations, BitsOfFloats) {
  NEEDS_COMPILER();
  check<int32_t>(
      "bitcast", [](Builder& b, std::span<const Value> v) { return b.convert(Op::bitcast, Scalar::i32, v[0]); },
      [](float a) { return std::bit_cast<int32_t>(a); }, hard_values<float>());
  check<double>(
      "bitcast", [](Builder& b, std::span<const Value> v) { return b.convert(Op::bitcast, Scalar::f64, v[0]); },
      [](int64_t a) { return std::bit_cast<double>(a); }, hard_values<int64_t>());
}

TEST(Operations, Booleans) {
  NEEDS_COMPILER();
  binary<Bit>("and", Op::bit_and, [](Bit a, Bit b) { return Bit{static_cast<uint8_t>(a.value & b.value)}; });
  binary<Bit>("or", Op::bit_or, [](Bit a, Bit b) { return Bit{static_cast<uint8_t>(a.value | b.value)}; });
  binary<Bit>("xor", Op::bit_xor, [](Bit a, Bit b) { return Bit{static_cast<uint8_t>(a.value ^ b.value)}; });
  binary<Bit>("eq", Op::eq, [](Bit a, Bit b) { return Bit{a == b}; });
}

template <class T>
void selects() {
  auto [left, right] = pairs<T>();
  std::vector<Bit> conditions;
  for (std::size_t i = 0; i < left.size(); ++i) conditions.push_back({static_cast<uint8_t>(i % 3 == 0)});
  check<T>(
      "select", [](Builder& b, std::span<const Value> v) { return b.compute(Op::select, v[0], v[1], v[2]); },
      [](Bit c, T a, T b) { return c.value ? a : b; }, conditions, left, right);
}

TEST(Operations, Select) {
  NEEDS_COMPILER();
  selects<float>();
  selects<double>();
  selects<int8_t>();
  selects<int16_t>();
  selects<int32_t>();
  selects<int64_t>();
  selects<Bit>();
}

// ---- the types of 16 bits ------------------------------------------------------------------------------------------

float from_half(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  float magnitude = exponent == 31  ? (fraction ? NAN : INFINITY)
                    : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                    : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

uint16_t to_half(float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  if (magnitude >= 65520) return sign | 0x7c00;
  const int exponent = magnitude == 0 ? -14 : std::max(-14, std::ilogb(magnitude));
  const auto units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));  // may reach 2048
  return static_cast<uint16_t>(sign | (exponent == -14 ? units : ((exponent + 14) << 10) + units));
}

uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

TEST(Operations, EveryHalfAndBfloat16Widens) {
  NEEDS_COMPILER();
  std::vector<F16> halves(65536);
  std::vector<Bf16> bfloat16s(65536);
  for (uint32_t i = 0; i < 65536; ++i) halves[i].bits = bfloat16s[i].bits = static_cast<uint16_t>(i);
  auto widen = [](Scalar type) {
    return [=](Builder& b, std::span<const Value> v) { return b.convert(Op::float_convert, type, v[0]); };
  };
  check<float>(
      "f16 to f32", widen(Scalar::f32), [](F16 a) { return from_half(a.bits); }, halves);
  check<double>(
      "f16 to f64", widen(Scalar::f64), [](F16 a) { return static_cast<double>(from_half(a.bits)); }, halves);
  check<float>(
      "bf16 to f32", widen(Scalar::f32), [](Bf16 a) { return std::bit_cast<float>(uint32_t{a.bits} << 16); },
      bfloat16s);
}

TEST(Operations, HalfAndBfloat16RoundToEven) {
  NEEDS_COMPILER();
  std::vector<float> values;
  for (float value : hard_values<float>()) {
    if (!std::isnan(value)) values.push_back(value);
  }
  for (uint32_t i = 0; i < 40000; ++i) {  // near every tie, and spread over all exponents
    uint32_t bits = i * 107374u ^ (i % 3 == 0 ? 0x8000u : i % 3 == 1 ? 0x1000u : 0u);
    if (float value = std::bit_cast<float>(bits); !std::isnan(value)) values.push_back(value);
    float tie = from_half(static_cast<uint16_t>(i % 0x7c00)) * (1 + 1.0f / 2048);
    values.insert(values.end(), {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, 1e9f)});
  }
  auto narrow = [](Scalar type) {
    return [=](Builder& b, std::span<const Value> v) {
      return b.convert(Op::bitcast, Scalar::i16, b.convert(Op::float_convert, type, v[0]));
    };
  };
  check<int16_t>(
      "f32 to f16", narrow(Scalar::f16), [](float a) { return static_cast<int16_t>(to_half(a)); }, values);
  check<int16_t>(
      "f32 to bf16", narrow(Scalar::bf16), [](float a) { return static_cast<int16_t>(to_bfloat16(a)); }, values);

  std::vector<float> nans;
  for (uint32_t bits : {0x7f800001u, 0xff800001u, 0x7fc00000u, 0xffffffffu, 0x7fffffffu})
    nans.push_back(std::bit_cast<float>(bits));
  for (Scalar type : {Scalar::f16, Scalar::bf16}) {
    std::vector<int16_t> out(nans.size());
    elementwise(static_cast<int64_t>(nans.size()), {{Scalar::f32, nans.data()}}, Scalar::i16, out.data(), true,
                narrow(type));
    const int infinity = type == Scalar::f16 ? 0x7c00 : 0x7f80, quiet = type == Scalar::f16 ? 0x200 : 0x40;
    for (int16_t bits : out) EXPECT_TRUE((bits & 0x7fff) > infinity && (bits & quiet)) << bits;
  }
}

TEST(Operations, FloatsOf32And64BitsConvert) {
  NEEDS_COMPILER();
  check<double>(
      "f32 to f64",
      [](Builder& b, std::span<const Value> v) { return b.convert(Op::float_convert, Scalar::f64, v[0]); },
      [](float a) { return static_cast<double>(a); }, hard_values<float>());
  check<float>(
      "f64 to f32",
      [](Builder& b, std::span<const Value> v) { return b.convert(Op::float_convert, Scalar::f32, v[0]); },
      [](double a) { return static_cast<float>(a); }, hard_values<double>());
}

TEST(Operations, MalformedFunctionsAreRefused) {
  NEEDS_COMPILER();
  Module module = module_with();
  int32_t out = Builder(module.functions[0]).parameter(4, true);
  Value never = module.functions[0].value(Scalar::f32);
  module.functions[0].body.push_back({Store{never, {out, 0, {}}}});
  EXPECT_THROW(compiler().object_code(module, compiler().host()), std::runtime_error);

  Module mixed = module_with();
  Builder builder(mixed.functions[0]);
  int32_t result = builder.parameter(4, true);
  Value integer = builder.load(Scalar::i32, {result, 0, {}});
  builder.store(builder.compute(Op::add, builder.load(Scalar::f32, {result, 0, {}}), integer), {result, 0, {}});
  EXPECT_THROW(compiler().object_code(mixed, compiler().host()), std::runtime_error);
}

}  // namespace
}  // namespace capibara::cpu
