// Lookups by name and the numeric limits of dtypes.
#include <capibara/dtype.h>

#include <cmath>

#include <capibara/error.h>

namespace capibara {
namespace {

consteval bool rows_are_in_enum_order() {
  for (std::size_t i = 0; i < dtype_table.size(); ++i) {
    if (dtype_table[i].dtype != static_cast<DType>(i)) return false;
  }
  return true;
}
static_assert(rows_are_in_enum_order(), "dtype_row indexes dtype_table by the enum's value");

std::optional<DType> find_row(std::string_view DTypeRow::*column, std::string_view name) {
  for (const DTypeRow& row : dtype_table) {
    if (row.*column == name) return row.dtype;
  }
  return std::nullopt;
}

// Where a format departs from IEEE 754: `top` is its greatest finite value.
struct FormatDeparture {
  DType dtype;
  int bias;
  double top;
  bool has_infinity;
  bool has_nan;
  bool has_negative_zero;
};

constexpr FormatDeparture departures[] = {
    {DType::float4_e2m1fn, 1, 6, false, false, true},        {DType::float6_e2m3fn, 1, 7.5, false, false, true},
    {DType::float6_e3m2fn, 3, 28, false, false, true},       {DType::float8_e4m3b11fnuz, 11, 30, false, true, false},
    {DType::float8_e4m3fn, 7, 448, false, true, true},       {DType::float8_e4m3fnuz, 8, 240, false, true, false},
    {DType::float8_e5m2fnuz, 16, 57344, false, true, false},
};

}  // namespace

std::optional<DType> dtype_from_name(std::string_view name) {
  if (name == "bool_") return DType::bool_;
  return find_row(&DTypeRow::name, name);
}

std::optional<DType> dtype_from_short_name(std::string_view name) { return find_row(&DTypeRow::short_name, name); }

std::optional<DType> dtype_from_stablehlo_name(std::string_view name) { return find_row(&DTypeRow::stablehlo, name); }

FloatInfo finfo(DType dtype) {
  if (!is_inexact(dtype)) {
    throw TypeError(concat("finfo: expected a floating or complex dtype, got ", dtype_name(dtype)));
  }
  const DTypeRow& row = dtype_row(real_dtype(dtype));
  FloatInfo info{};
  info.bits = row.bits;
  info.exponent_bits = row.exponent_bits;
  info.mantissa_bits = row.mantissa_bits;
  info.precision = static_cast<int>(std::floor(row.mantissa_bits * std::log10(2.0)));
  info.eps = std::ldexp(1.0, -row.mantissa_bits);
  info.epsneg = info.eps / 2;
  if (row.dtype == DType::float8_e8m0fnu) {
    // Powers of two only: no sign, no zero.
    info.precision = 1;
    info.max = std::ldexp(1.0, 127);
    info.min = info.tiny = info.smallest_subnormal = std::ldexp(1.0, -127);
    info.has_nan = true;
    return info;
  }
  int bias = (1 << (row.exponent_bits - 1)) - 1;
  info.max = std::ldexp(2.0 - info.eps, bias);
  info.has_infinity = info.has_nan = info.has_negative_zero = true;
  for (const FormatDeparture& departure : departures) {
    if (departure.dtype != row.dtype) continue;
    bias = departure.bias;
    info.max = departure.top;
    info.has_infinity = departure.has_infinity;
    info.has_nan = departure.has_nan;
    info.has_negative_zero = departure.has_negative_zero;
  }
  info.min = -info.max;
  info.tiny = std::ldexp(1.0, 1 - bias);
  info.smallest_subnormal = std::ldexp(info.eps, 1 - bias);
  if (row.dtype == DType::float4_e2m1fn) info.epsneg = 0.5;  // below 1 only the subnormal 0.5
  if (row.dtype == DType::float6_e2m3fn) info.epsneg = 0.125;
  if (row.bits == 8) info.precision = 1;  // as ml_dtypes states it
  return info;
}

IntInfo iinfo(DType dtype) {
  if (is_bool(dtype)) return {1, 0, 1};
  if (!is_integer(dtype)) {
    throw TypeError(concat("iinfo: expected an integer dtype, got ", dtype_name(dtype)));
  }
  const int width = bits(dtype);
  const std::uint64_t ones = ~std::uint64_t{0} >> (64 - width);
  if (is_unsigned(dtype)) return {width, 0, ones};
  return {width, static_cast<std::int64_t>(~(ones >> 1)), ones >> 1};
}

}  // namespace capibara
