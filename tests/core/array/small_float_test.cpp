// Conversions of small floats and integers, against ml_dtypes and against a slow nearest-value search.
#include "core/array/small_float.h"

#include <gtest/gtest.h>

#include <cmath>

#include "case_file.h"
#include "core/array/element.h"

namespace capibara {
namespace {

std::vector<std::vector<std::string>> ml_dtypes_rows() { return testing::read_rows("small_float_cases.tsv"); }

double from_hex(const std::string& text) { return std::bit_cast<double>(std::stoull(text, nullptr, 16)); }

template <class F>
void visit_small(DType dtype, F&& f) {
  visit_storage(dtype, [&]<class T>(Type<T>) {
    if constexpr (requires { T::from_bits(0); }) f(Type<T>{});
  });
}

TEST(SmallFloat, EveryCodeHasTheValueOfMlDtypes) {
  int codes = 0;
  for (const auto& row : ml_dtypes_rows()) {
    if (row[0] != "decode") continue;
    visit_small(*dtype_from_name(row[1]), [&]<class T>(Type<T>) {
      for (std::size_t code = 0; code + 2 < row.size(); ++code, ++codes) {
        const double value = static_cast<double>(T::from_bits(static_cast<std::uint8_t>(code)));
        if (row[code + 2] == "nan") {
          EXPECT_TRUE(std::isnan(value)) << row[1] << " code " << code;
        } else {
          EXPECT_EQ(std::bit_cast<std::uint64_t>(value), std::bit_cast<std::uint64_t>(from_hex(row[code + 2])))
              << row[1] << " code " << code;
          if (value != 0 || row[1].find("fnuz") == std::string::npos) {
            EXPECT_EQ(T(value).bits, code) << row[1];
          }
        }
      }
    });
  }
  EXPECT_EQ(codes, 16 + 2 * 64 + 8 * 256);
}

TEST(SmallFloat, RoundsDoublesAsMlDtypesDoes) {
  int cases = 0;
  for (const auto& row : ml_dtypes_rows()) {
    if (row[0] != "encode") continue;
    ++cases;
    visit_small(*dtype_from_name(row[1]), [&]<class T>(Type<T>) {
      const double value = from_hex(row[2]);
      EXPECT_EQ(T(value).bits, std::stoi(row[3])) << row[1] << " from " << value << " = " << row[2];
    });
  }
  EXPECT_GT(cases, 1000);
}

TEST(SmallFloat, DoublesRoundOnceToTheNearestNeighbour) {
  for (const DTypeRow& row : dtype_table) {
    if (!is_floating(row.dtype) || row.bits > 16 || row.dtype == DType::bfloat16) continue;
    visit_small(row.dtype, [&]<class T>(Type<T>) {
      if constexpr (requires { T::format; }) {
        for (std::uint32_t code = 0; code < T::format.max_code(); ++code) {
          const double low = static_cast<double>(T::from_bits(static_cast<typename T::Bits>(code)));
          const double high = static_cast<double>(T::from_bits(static_cast<typename T::Bits>(code + 1)));
          const double middle = (low + high) / 2;
          const std::uint32_t even = row.mantissa_bits == 0 ? code + 1 : code + (code & 1);
          ASSERT_LT(low, high);
          ASSERT_EQ(T(low).bits, code) << row.name;
          ASSERT_EQ(T(middle).bits, even) << row.name;
          ASSERT_EQ(T(std::nextafter(middle, 0)).bits, code) << row.name;
          ASSERT_EQ(T(std::nextafter(middle, 1e300)).bits, code + 1) << row.name;
          if (T::format.sign_bit() && even != 0) {
            ASSERT_EQ(T(-middle).bits, T::format.sign_bit() | even) << row.name;
          }
        }
      }
    });
  }
}

TEST(SmallFloat, BFloat16IsTheUpperHalfOfAFloat) {
  for (std::uint32_t code = 0; code < 0x7f80; ++code) {
    const float low = static_cast<float>(BFloat16::from_bits(static_cast<std::uint16_t>(code)));
    ASSERT_EQ(BFloat16(low).bits, code);
    const float middle = std::bit_cast<float>((code << 16) + 0x8000u);
    ASSERT_EQ(BFloat16(middle).bits, code + (code & 1));
    ASSERT_EQ(BFloat16(std::bit_cast<float>((code << 16) + 0x8001u)).bits, code + 1);
  }
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(NAN))));
}

TEST(SmallInt, WrapsToItsWidth) {
  EXPECT_EQ(static_cast<std::int64_t>(Int4(std::int64_t{9})), -7);
  EXPECT_EQ(static_cast<std::int64_t>(Int4(std::int64_t{300})), -4);
  EXPECT_EQ(static_cast<std::int64_t>(UInt4(std::int64_t{-1})), 15);
  EXPECT_EQ(static_cast<std::int64_t>(Int2(std::int64_t{2})), -2);
  EXPECT_EQ(static_cast<std::int64_t>(UInt1(std::int64_t{3})), 1);
  Int4 foreign;
  foreign.byte = 0x0f;  // without the sign in the upper bits
  EXPECT_EQ(static_cast<std::int64_t>(foreign), -1);
}

template <class To>
std::vector<To> converted(DType from, const void* data, DType to, std::int64_t count) {
  std::vector<To> result(static_cast<std::size_t>(count));
  convert_elements(from, data, to, result.data(), count);
  return result;
}

TEST(ConvertElements, FloatsSaturateToIntegersAndNanIsZero) {
  const float values[] = {NAN, INFINITY, -INFINITY, 3e9f, -3e9f, 300, -300, -1.5f, -0.9f, 2.7f};
  using Ints = std::vector<int>;
  const auto as_ints = [&]<class T>(Type<T>, DType to) {
    const auto result = converted<T>(DType::float32, values, to, 10);
    return Ints(result.begin(), result.end());
  };
  EXPECT_EQ(as_ints(Type<std::int8_t>{}, DType::int8), (Ints{0, 127, -128, 127, -128, 127, -128, -1, 0, 2}));
  EXPECT_EQ(as_ints(Type<std::uint8_t>{}, DType::uint8), (Ints{0, 255, 0, 255, 0, 255, 0, 0, 0, 2}));
  EXPECT_EQ(as_ints(Type<std::int8_t>{}, DType::int4), (Ints{0, 7, -8, 7, -8, 7, -8, -1, 0, 2}));
  EXPECT_EQ(as_ints(Type<std::int32_t>{}, DType::int32),
            (Ints{0, 2147483647, -2147483647 - 1, 2147483647, -2147483647 - 1, 300, -300, -1, 0, 2}));
  const auto wide = converted<std::uint64_t>(DType::float32, values, DType::uint64, 10);
  EXPECT_EQ(wide[1], ~std::uint64_t{0});
  EXPECT_EQ(wide[3], 3000000000u);
}

TEST(ConvertElements, IntegersWrapAndComplexDropsItsImaginaryPart) {
  const std::int32_t integers[] = {-1, 300, 256, 9};
  EXPECT_EQ(converted<std::uint8_t>(DType::int32, integers, DType::uint8, 4),
            (std::vector<std::uint8_t>{255, 44, 0, 9}));
  EXPECT_EQ(converted<std::int8_t>(DType::int32, integers, DType::int4, 4), (std::vector<std::int8_t>{-1, -4, 0, -7}));
  const std::complex<float> numbers[] = {{0, 1}, {2.5f, 3}};
  EXPECT_EQ(converted<std::uint8_t>(DType::complex64, numbers, DType::bool_, 2), (std::vector<std::uint8_t>{0, 1}));
  EXPECT_EQ(converted<float>(DType::complex64, numbers, DType::float32, 2), (std::vector<float>{0, 2.5f}));
  EXPECT_EQ(converted<std::int16_t>(DType::complex64, numbers, DType::int16, 2), (std::vector<std::int16_t>{0, 2}));
}

TEST(ConvertElements, DoubleToHalfRoundsOnce) {
  const double values[] = {1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11};
  EXPECT_EQ(converted<std::uint16_t>(DType::float64, values, DType::float16, 2),
            (std::vector<std::uint16_t>{0x3c01, 0x3c00}));
}

TEST(ConvertElements, RoundTripsThroughEveryWiderType) {
  for (const DTypeRow& row : dtype_table) {
    if (!is_floating(row.dtype) || row.bits > 8) continue;
    std::vector<std::uint8_t> codes(std::size_t{1} << row.bits);
    for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(i);
    const auto count = static_cast<std::int64_t>(codes.size());
    const auto wide = converted<double>(row.dtype, codes.data(), DType::float64, count);
    const auto back = converted<std::uint8_t>(DType::float64, wide.data(), row.dtype, count);
    for (std::size_t i = 0; i < codes.size(); ++i) {
      if (!std::isnan(wide[i])) {
        EXPECT_EQ(back[i], codes[i]) << row.name;
      }
    }
  }
}

TEST(Elements, LoadAndStoreWrapOrRound) {
  std::uint8_t nibbles[2] = {};
  store_as<std::int8_t>(DType::int4, nibbles, 1, 9);
  EXPECT_EQ(load_as<std::int8_t>(DType::int4, nibbles, 1), -7);
  EXPECT_EQ(element_as_int64(DType::int4, nibbles, 1), -7);
  std::uint16_t half[1] = {};
  store_as<float>(DType::float16, half, 0, 65520.0f);
  EXPECT_EQ(element_as_double(DType::float16, half, 0), INFINITY);
  const std::uint8_t flags[] = {0, 2, 1};
  Elements<bool> loaded = load_all<bool>(DType::bool_, flags, 3);
  EXPECT_FALSE(loaded[0]);
  EXPECT_TRUE(loaded[1]);
  const float floats[] = {1, 2};
  EXPECT_EQ(read_all<float>(DType::float32, floats, 2).data(), floats);
  EXPECT_ANY_THROW(load_as<float>(DType::key_fry, floats, 0));
}

}  // namespace
}  // namespace capibara
