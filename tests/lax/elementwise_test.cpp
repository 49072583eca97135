// Elementwise and special primitives: values at hard points, derivatives as jax writes them, promotion, errors.
#include <capibara/config.h>
#include <capibara/lax.h>
#include <capibara/primitive.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "transforms/flat.h"

namespace capibara {
namespace {

namespace lax = jax::lax;
const float inf = std::numeric_limits<float>::infinity();
const float nan = std::numeric_limits<float>::quiet_NaN();

using Floats = std::vector<float>;
using Integers = std::vector<int>;

ArrayType f32(Shape shape) { return {std::move(shape), DType::float32, false, false, {}}; }

std::string text(const FlatFunction& function, const Types& types) {
  return stage(function, types, "f").program.to_string();
}

// The jaxpr of (primals, tangents) -> (output, tangent).
std::string jvp_text(const FlatFunction& function, std::size_t count) {
  return text(
      [&](std::span<const Array> in) {
        JvpResult result = jvp_flat(function, in.first(count), in.subspan(count));
        return Arrays{result.primals[0], result.tangents[0]};
      },
      Types(2 * count, f32({3})));
}

Array derivative(const FlatFunction& function, const Array& x) {
  const Array ones = lax::full_like(x, 1);
  return jvp_flat(function, std::span(&x, 1), std::span(&ones, 1)).tangents[0];
}

template <class Error>
std::string message_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// ---- values -------------------------------------------------------------------------------------------------------

TEST(Elementwise, IntegersWrapAndDivideTowardZero) {
  EXPECT_EQ(lax::add(array<int8_t>({127}), array<int8_t>({1})).to_vector<int>(), Integers({-128}));
  EXPECT_EQ(lax::neg(array<int8_t>({-128})).to_vector<int>(), Integers({-128}));
  EXPECT_EQ(lax::div(array<int>({-7, 7, 5, INT32_MIN}), array<int>({2, -2, 0, -1})).to_vector<int>(),
            Integers({-3, -3, -1, INT32_MIN}));
  EXPECT_EQ(lax::rem(array<int>({-7, 7, 5, INT32_MIN}), array<int>({2, -2, 0, -1})).to_vector<int>(),
            Integers({-1, 1, 5, 0}));
}

TEST(Elementwise, SubByteIntegersWrapAtTheirWidth) {
  const Array x = lax::convert_element_type(array<int>({7, -8, -1}), DType::int4);
  EXPECT_EQ(lax::add(x, lax::full_like(x, 1)).to_vector<int>(), Integers({-8, -7, 0}));
  EXPECT_EQ(lax::population_count(x).to_vector<int>(), Integers({3, 1, 4}));
}

TEST(Elementwise, ShiftsBeyondTheWidthGiveZeroOrTheSign) {
  const Array x = array<int>({-8, -8, 1}), y = array<int>({1, 40, -1});
  EXPECT_EQ(lax::shift_left(x, y).to_vector<int>(), Integers({-16, 0, 0}));
  EXPECT_EQ(lax::shift_right_arithmetic(x, y).to_vector<int>(), Integers({-4, -1, 0}));
  EXPECT_EQ(lax::shift_right_logical(x, y).to_vector<int>(), Integers({0x7ffffffc, 0, 0}));
}

TEST(Elementwise, ExtremaPropagateNaNAndOrderZeros) {
  const Array m = lax::max(array<float>({1, nan, 1, -0.0f}), array<float>({2, 1, nan, 0.0f}));
  const Floats v = m.to_vector<float>();
  EXPECT_EQ(v[0], 2);
  EXPECT_TRUE(std::isnan(v[1]) && std::isnan(v[2]));
  EXPECT_FALSE(std::signbit(v[3]));
}

TEST(Elementwise, RoundingHalves) {
  const Array x = array<float>({0.5f, 1.5f, 2.5f, -0.5f, -2.5f});
  EXPECT_EQ(lax::round(x).to_vector<float>(), Floats({1, 2, 3, -1, -3}));
  EXPECT_EQ(lax::round(x, lax::RoundingMethod::to_nearest_even).to_vector<float>(), Floats({0, 2, 2, -0.0f, -2}));
}

TEST(Elementwise, TotalOrderTellsZerosAndNaNsApart) {
  const Array x = array<float>({-0.0f, nan, -inf}), y = array<float>({0.0f, inf, -nan});
  EXPECT_EQ(lax::lt_to(x, y).to_vector<bool>(), std::vector<bool>({true, false, false}));
  EXPECT_EQ(lax::eq_to(x, x).to_vector<bool>(), std::vector<bool>({true, true, true}));
}

TEST(Elementwise, LowPrecisionRoundsOnce) {
  const Array x = lax::convert_element_type(array<float>({1.0f, 256.0f}), DType::bfloat16);
  EXPECT_EQ(lax::add(x, lax::full_like(x, 0.00390625)).to_vector<float>(), Floats({1.0f, 256.0f}));
  EXPECT_EQ(lax::mul(x, lax::full_like(x, 3)).to_vector<float>(), Floats({3.0f, 768.0f}));
}

TEST(Elementwise, ConversionsSaturateTruncateAndTestForZero) {
  EXPECT_EQ(lax::convert_element_type(array<float>({-1.9f, 300.0f, nan, -inf}), DType::int8).to_vector<int>(),
            Integers({-1, 127, 0, -128}));
  EXPECT_EQ(lax::convert_element_type(array<float>({0.5f, 0.0f, nan}), DType::bool_).to_vector<bool>(),
            std::vector<bool>({true, false, true}));
}

TEST(Elementwise, BitcastSplitsAndJoinsTheLastDimension) {
  const Array x = array<float>({1.0f, -2.0f});
  const Array bytes = lax::bitcast_convert_type(x, DType::uint8);
  EXPECT_EQ(bytes.shape(), Shape({2, 4}));
  EXPECT_EQ(lax::bitcast_convert_type(bytes, DType::float32).to_vector<float>(), x.to_vector<float>());
  const Array nibbles = lax::bitcast_convert_type(array<uint8_t>({0xa3}), DType::uint4);
  EXPECT_EQ(nibbles.to_vector<int>(), Integers({3, 10}));
  EXPECT_EQ(lax::bitcast_convert_type(nibbles, DType::uint8).to_vector<int>(), Integers({0xa3}));
}

TEST(Elementwise, ReducePrecisionRoundsMantissaAndRange) {
  const Array x = array<float>({1.0f + 1.0f / 1024, 70000.0f, 1e-8f});
  EXPECT_EQ(lax::reduce_precision(x, 5, 9).to_vector<float>(), Floats({1.0f, inf, 0.0f}));
}

TEST(Elementwise, SelectClampsIndicesToTheCases) {
  const Array a = array<int>({1, 2, 3}), b = array<int>({10, 20, 30}), c = array<int>({100, 200, 300});
  EXPECT_EQ(lax::select_n(array<int>({0, 2, 9}), {a, b, c}).to_vector<int>(), Integers({1, 200, 300}));
}

TEST(Elementwise, DimensionsOfSizeOneStretch) {
  const Array x = array<float>({1, 2}, Shape{2, 1}), y = array<float>({10, 20, 30}, Shape{1, 3});
  EXPECT_EQ(lax::add(x, y).to_vector<float>(), Floats({11, 21, 31, 12, 22, 32}));
  EXPECT_EQ(lax::add(array<float>(Floats{}, Shape{0, 1}), y).shape(), Shape({0, 3}));
}

TEST(Special, LoweredFormAgreesWithTheKernel) {
  const Array a = array<float>({0.5f, 2.0f, 7.0f}), x = array<float>({0.3f, 3.0f, 4.5f});
  for (const char* name : {"igamma", "igammac", "igamma_grad_a", "random_gamma_grad"}) {
    const Primitive p = primitive(name);
    const Arrays operands = {a, x};
    const Floats direct = capibara::bind(p, operands)[0].to_vector<float>();
    const Floats lowered = p->lower(operands, {})[0].to_vector<float>();
    for (std::size_t i = 0; i < direct.size(); ++i)
      EXPECT_NEAR(lowered[i], direct[i], 1e-5f * std::fabs(direct[i])) << name;
  }
  EXPECT_NEAR(lax::igamma(a, x).to_vector<float>()[0], 0.56142193f, 1e-6f);
  EXPECT_NEAR(lax::betainc(2.0, 3.0, array<float>({0.4f})).item<float>(), 0.5248f, 1e-5f);
}

// ---- derivatives --------------------------------------------------------------------------------------------------

TEST(Derivative, OfAbsAtZeroIsOne) {
  EXPECT_EQ(derivative([](std::span<const Array> in) { return Arrays{lax::abs(in[0])}; }, array<float>({0, -2, 3}))
                .to_vector<float>(),
            Floats({1, -1, 1}));
}

TEST(Derivative, OfMaxSplitsTiesEvenly) {
  EXPECT_EQ(derivative(
                [](std::span<const Array> in) {
                  return Arrays{lax::max(in[0], array<float>({1, 1, 1}))};
                },
                array<float>({1, 2, 0}))
                .to_vector<float>(),
            Floats({0.5f, 1, 0}));
}

TEST(Derivative, OfClampIsZeroAtItsBounds) {
  EXPECT_EQ(derivative([](std::span<const Array> in) { return Arrays{lax::clamp(0.0, in[0], 1.0)}; },
                       array<float>({0, 0.5f, 1}))
                .to_vector<float>(),
            Floats({0, 1, 0}));
}

TEST(Derivative, OfPowToTheZeroIsZero) {
  EXPECT_EQ(derivative([](std::span<const Array> in) { return Arrays{lax::pow(in[0], 0)}; }, array<float>({0, 2}))
                .to_vector<float>(),
            Floats({0, 0}));
}

TEST(Derivative, OfTanhIsWrittenAsJaxWritesIt) {
  EXPECT_EQ(jvp_text([](std::span<const Array> in) { return Arrays{lax::tanh(in[0])}; }, 1),
            "{ lambda ; a:f32[3] b:f32[3]. let\n"
            "    c:f32[3] = tanh a\n"
            "    d:f32[3] = mul b c\n"
            "    e:f32[3] = add b d\n"
            "    f:f32[3] = sub 1.0:f32[] c\n"
            "    g:f32[3] = mul e f\n"
            "  in (c, g) }");
}

TEST(Derivative, OfMaxIsWrittenAsJaxWritesIt) {
  EXPECT_EQ(jvp_text([](std::span<const Array> in) { return Arrays{lax::max(in[0], 0.0)}; }, 1),
            "{ lambda ; a:f32[3] b:f32[3]. let\n"
            "    c:f32[3] = max a 0.0:f32[]\n"
            "    d:bool[3] = eq a c\n"
            "    e:f32[3] = broadcast_in_dim 1.0:f32[]\n"
            "    f:f32[3] = broadcast_in_dim 0.0:f32[]\n"
            "    g:f32[3] = select_n d f e\n"
            "    h:bool[3] = eq 0.0:f32[] c\n"
            "    i:f32[3] = broadcast_in_dim 2.0:f32[]\n"
            "    j:f32[3] = broadcast_in_dim 1.0:f32[]\n"
            "    k:f32[3] = select_n h j i\n"
            "    l:f32[3] = div g k\n"
            "    m:f32[3] = mul b l\n"
            "  in (c, m) }");
}

TEST(Derivative, OfStopGradientIsZero) {
  const Array dx = derivative(
      [](std::span<const Array> in) { return Arrays{lax::mul(lax::stop_gradient(in[0]), in[0])}; }, array<float>({3}));
  EXPECT_EQ(dx.item<float>(), 3);
}

TEST(Derivative, OfBetaIncInItsParametersIsRefused) {
  const std::string message = message_of<ValueError>([] {
    derivative([](std::span<const Array> in) { return Arrays{lax::betainc(in[0], 1.0, 0.5)}; }, array<float>({2}));
  });
  EXPECT_NE(message.find("regularized_incomplete_beta"), std::string::npos) << message;
}

// ---- operators ----------------------------------------------------------------------------------------------------

TEST(Operators, NumbersTakeTheArraysDtype) {
  EXPECT_EQ((lax::convert_element_type(array<float>({1}), DType::bfloat16) + 1.5).dtype(), DType::bfloat16);
  EXPECT_EQ((array<int>({1}) + 1.5).dtype(), DType::float32);
  EXPECT_TRUE((Array(1) + Array(2)).weak_type());
  EXPECT_EQ((array<int>({7}) / 2).item<float>(), 3.5f);
}

TEST(Operators, RemainderHasTheSignOfTheDivisor) {
  EXPECT_EQ((array<int>({-7, 7, 7}) % array<int>({3, -3, 0})).to_vector<int>(), Integers({2, -2, 0}));
  EXPECT_EQ((array<float>({-7, 7}) % 3).to_vector<float>(), Floats({2, 1}));
}

TEST(Operators, LowerRanksGrowByLeadingDimensions) {
  EXPECT_EQ(text([](std::span<const Array> in) { return Arrays{in[0] + in[1]}; }, {f32({2, 3}), f32({3})}),
            "{ lambda ; a:f32[2,3] b:f32[3]. let\n"
            "    c:f32[1,3] = broadcast_in_dim[broadcast_dimensions=(1,)] b\n"
            "    d:f32[2,3] = add a c\n"
            "  in (d,) }");
}

TEST(Operators, RankPromotionCanBeRefused) {
  const ConfigScope scope = jax::numpy_rank_promotion("raise");
  EXPECT_THROW(array<float>({1, 2}, Shape{1, 2}) + array<float>({1, 2}), ValueError);
  EXPECT_NO_THROW(array<float>({1, 2}) + 1);
}

TEST(Operators, ComplexNumbersCompareByTheirRealParts) {
  using C = std::complex<float>;
  EXPECT_EQ((array<C>({C(1, 5), C(1, 2)}) < array<C>({C(2, 0), C(1, 3)})).to_vector<bool>(),
            std::vector<bool>({true, true}));
}

// ---- errors -------------------------------------------------------------------------------------------------------

TEST(ElementwiseErrors, NameOperationAndDtypes) {
  EXPECT_EQ(
      message_of<TypeError>([] { lax::add(array<float>({1}), array<int>({1})); }),
      "lax.add requires arguments to have the same dtypes, got float32, int32. (Tip: jnp.add is a similar function "
      "that does automatic type promotion on inputs).");
  EXPECT_EQ(message_of<TypeError>([] { lax::neg(array<bool>({true})); }),
            "neg does not accept dtype bool. Accepted dtypes are subtypes of integer, floating, complexfloating.");
  EXPECT_EQ(message_of<TypeError>([] {
              lax::add(array<float>({1, 2}), array<float>({1, 2, 3}));
            }),
            "add got incompatible shapes for broadcasting: (2,), (3,).");
}

TEST(ElementwiseErrors, IntegersHaveNoNegativePowers) {
  EXPECT_THROW(lax::integer_pow(array<int>({2}), -1), TypeError);
  EXPECT_THROW(lax::pow(array<int>({2}), array<int>({3})), TypeError);
}

TEST(ElementwiseErrors, SelectNeedsEqualShapes) {
  EXPECT_THROW(lax::select(array<bool>({true}), array<float>({1, 2}), array<float>({1})), TypeError);
  EXPECT_THROW(lax::select(array<float>({1}), array<float>({1}), array<float>({2})), TypeError);
}

TEST(Catalog, SuggestsTheNearestName) {
  EXPECT_NE(message_of<NameError>([] { primitive("tanhh"); }).find("'tanh'"), std::string::npos);
}

TEST(Catalog, EveryElementwiseSampleTypeChecks) {
  for (const char* name :
       {"add", "mul", "pow", "clamp", "select_n", "convert_element_type", "erf", "igamma", "round"}) {
    const Primitive p = primitive(name);
    for (DType dtype : p->dtypes) {
      for (const Sample& sample : p->samples(dtype)) EXPECT_NO_THROW(p->type(sample.inputs, sample.attrs)) << name;
    }
  }
}

}  // namespace
}  // namespace capibara
