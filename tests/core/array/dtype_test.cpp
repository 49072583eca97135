// Names, kinds and limits of dtypes.
#include <capibara/dtype.h>

#include <gtest/gtest.h>

#include <capibara/error.h>

#include <cmath>
#include <limits>

namespace capibara {
namespace {

TEST(DType, NamesReadBack) {
  for (const DTypeRow& row : dtype_table) {
    EXPECT_EQ(dtype_from_name(row.name), row.dtype) << row.name;
    EXPECT_EQ(dtype_from_short_name(row.short_name), row.dtype) << row.short_name;
  }
  EXPECT_EQ(dtype_from_name("bool_"), DType::bool_);
  EXPECT_EQ(dtype_from_name("float31"), std::nullopt);
}

TEST(DType, StablehloI1IsBool) {
  EXPECT_EQ(dtype_from_stablehlo_name("i1"), DType::bool_);
  EXPECT_EQ(dtype_from_stablehlo_name("complex<f32>"), DType::complex64);
  EXPECT_EQ(dtype_from_stablehlo_name("f8E4M3B11FNUZ"), DType::float8_e4m3b11fnuz);
  EXPECT_EQ(dtype_from_stablehlo_name("ui32"), DType::uint32);
}

TEST(DType, StorageIsAtLeastOneByte) {
  EXPECT_EQ(storage_size(DType::int4), 1);
  EXPECT_EQ(storage_size(DType::bool_), 1);
  EXPECT_EQ(storage_size(DType::complex128), 16);
  EXPECT_EQ(storage_size(DType::key_fry), 8);
  EXPECT_EQ(key_words(DType::key_rbg), 4);
}

TEST(DType, KindsAreDisjoint) {
  for (const DTypeRow& row : dtype_table) {
    const int kinds = is_bool(row.dtype) + is_signed(row.dtype) + is_unsigned(row.dtype) + is_floating(row.dtype) +
                      is_complex(row.dtype) + is_key(row.dtype) + (row.dtype == DType::float0) +
                      (row.dtype == DType::token);
    EXPECT_EQ(kinds, 1) << row.name;
  }
}

TEST(DType, CanonicalizeNarrowsOnlyWithoutX64) {
  EXPECT_EQ(canonicalize(DType::float64, false), DType::float32);
  EXPECT_EQ(canonicalize(DType::complex128, false), DType::complex64);
  EXPECT_EQ(canonicalize(DType::uint64, false), DType::uint32);
  EXPECT_EQ(canonicalize(DType::int64, true), DType::int64);
  EXPECT_EQ(canonicalize(DType::int4, false), DType::int4);
}

TEST(DType, FloatLimits) {
  EXPECT_EQ(finfo(DType::float32).max, static_cast<double>(std::numeric_limits<float>::max()));
  EXPECT_EQ(finfo(DType::float32).eps, static_cast<double>(std::numeric_limits<float>::epsilon()));
  EXPECT_EQ(finfo(DType::float64).tiny, std::numeric_limits<double>::min());
  EXPECT_EQ(finfo(DType::float64).smallest_subnormal, std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(finfo(DType::complex64).max, finfo(DType::float32).max);
  EXPECT_EQ(finfo(DType::float16).max, 65504);
  EXPECT_EQ(finfo(DType::float16).precision, 3);
  EXPECT_EQ(finfo(DType::float8_e5m2).precision, 1);
  EXPECT_EQ(finfo(DType::bfloat16).eps, 0.0078125);
  EXPECT_EQ(finfo(DType::float8_e4m3fn).max, 448);
  EXPECT_EQ(finfo(DType::float8_e4m3).max, 240);
  EXPECT_EQ(finfo(DType::float8_e3m4).max, 15.5);
  EXPECT_EQ(finfo(DType::float8_e4m3b11fnuz).tiny, 0.0009765625);
  EXPECT_EQ(finfo(DType::float8_e5m2fnuz).smallest_subnormal, 7.62939453125e-06);
  EXPECT_EQ(finfo(DType::float8_e8m0fnu).min, std::ldexp(1.0, -127));
  EXPECT_EQ(finfo(DType::float4_e2m1fn).smallest_subnormal, 0.5);
  EXPECT_THROW(finfo(DType::int32), TypeError);
}

TEST(DType, IntegerLimits) {
  EXPECT_EQ(iinfo(DType::int8).min, -128);
  EXPECT_EQ(iinfo(DType::int64).min, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(iinfo(DType::uint64).max, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(iinfo(DType::int2).min, -2);
  EXPECT_EQ(iinfo(DType::int2).max, 1u);
  EXPECT_EQ(iinfo(DType::uint4).max, 15u);
  EXPECT_THROW(iinfo(DType::float32), TypeError);
}

}  // namespace
}  // namespace capibara
