// Dtype promotion against JAX's tables and error messages.
#include "core/array/promotion.h"

#include <gtest/gtest.h>

#include <capibara/error.h>

#include "case_file.h"

namespace capibara {
namespace {

ScalarType parse(const std::string& name, bool x64) {
  if (name == "i*") return python_scalar_type(PythonScalar::int_, x64);
  if (name == "f*") return python_scalar_type(PythonScalar::float_, x64);
  if (name == "c*") return python_scalar_type(PythonScalar::complex_, x64);
  if (name == "b1") return {DType::bool_, false};
  return {*dtype_from_short_name(name), false};
}

class PromotionTable : public ::testing::TestWithParam<bool> {};

TEST_P(PromotionTable, EqualsJax) {
  const bool x64 = GetParam();
  const auto rows = testing::read_rows(x64 ? "promotion_x64.tsv" : "promotion_x32.tsv");
  ASSERT_FALSE(rows.empty());
  for (std::size_t i = 1; i < rows.size(); ++i) {
    for (std::size_t j = 1; j < rows[i].size(); ++j) {
      const ScalarType left = parse(rows[i][0], x64);
      const ScalarType right = parse(rows[0][j], x64);
      SCOPED_TRACE(rows[i][0] + " with " + rows[0][j]);
      if (rows[i][j] == "ERR") {
        EXPECT_THROW(promote_types(left, right, x64), TypePromotionError);
      } else {
        EXPECT_EQ(promote_types(left, right, x64), parse(rows[i][j], x64));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, PromotionTable, ::testing::Bool());

std::string error_text(std::initializer_list<ScalarType> types, PromotionMode mode = PromotionMode::standard) {
  try {
    promote_types(std::span(types.begin(), types.size()), false, mode);
  } catch (const ValueError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Promotion, WeakTypesAloneKeepTheirOwnWidth) {
  EXPECT_EQ(promote_types({DType::int16, true}, {DType::int8, true}, false), (ScalarType{DType::int16, true}));
  EXPECT_EQ(promote_types({DType::bool_, false}, {DType::int32, true}, false), (ScalarType{DType::int32, true}));
  EXPECT_EQ(promote_types({DType::bfloat16, false}, {DType::float32, true}, false),
            (ScalarType{DType::bfloat16, false}));
}

TEST(Promotion, WideTypesAreCanonicalisedWithoutX64) {
  EXPECT_EQ(promote_types({DType::int64, false}, {DType::float64, false}, false), (ScalarType{DType::float32, false}));
  EXPECT_EQ(promote_types({DType::int64, false}, {DType::uint64, false}, false), (ScalarType{DType::float32, true}));
  EXPECT_EQ(promote_types({DType::float64, false}, {DType::float64, false}, false),
            (ScalarType{DType::float64, false}));
}

TEST(Promotion, EqualKeysPassThroughAndOthersAreRefused) {
  EXPECT_EQ(promote_types({DType::key_fry, false}, {DType::key_fry, false}, false).dtype, DType::key_fry);
  EXPECT_EQ(error_text({{DType::key_fry}, {DType::float32}}),
            "dtype=key<fry> is not a valid dtype for JAX type promotion.");
  EXPECT_THROW(promote_types(std::span<const ScalarType>{}, false), ValueError);
}

TEST(Promotion, ErrorsSayWhatJaxSays) {
  EXPECT_EQ(error_text({{DType::float8_e4m3fn}, {DType::bfloat16}}),
            "Input dtypes ('float8_e4m3fn', 'bfloat16') have no available implicit dtype promotion path. To avoid "
            "unintended promotion, 8-bit floats do not support implicit promotion. If you'd like your inputs to be "
            "promoted to another type, you can do so explicitly using e.g. x.astype('float32')");
  EXPECT_EQ(error_text({{DType::int4}, {DType::float32, true}}),
            "Input dtypes ('int4', \"<class 'float'>\") have no available implicit dtype promotion path. To avoid "
            "unintended promotion, 1-bit, 2-bit and 4-bit integers do not support implicit promotion. If you'd like "
            "your inputs to be promoted to another type, you can do so explicitly using e.g. x.astype('int32')");
}

TEST(Promotion, StrictAllowsOnlyWeakTypesToPromote) {
  const auto strict = PromotionMode::strict;
  EXPECT_EQ(promote_types({DType::float32, false}, {DType::int32, true}, false, strict),
            (ScalarType{DType::float32, false}));
  EXPECT_EQ(promote_types({DType::int32, true}, {DType::float32, true}, false, strict),
            (ScalarType{DType::float32, true}));
  EXPECT_THROW(promote_types({DType::bool_, false}, {DType::int32, true}, false, strict), TypePromotionError);
  EXPECT_EQ(error_text({{DType::int32}, {DType::float32}}, strict),
            "Input dtypes ('int32', 'float32') have no available implicit dtype promotion path when "
            "jax_numpy_dtype_promotion=strict. Try explicitly casting inputs to the desired output type, or set "
            "jax_numpy_dtype_promotion=standard.");
}

}  // namespace
}  // namespace capibara
