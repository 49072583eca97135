// The element types of arrays: one table of names, sizes and formats, and queries on them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace capibara {

// In the order of dtype_table below.
enum class DType : std::uint8_t {
  bool_,
  int1,
  int2,
  int4,
  int8,
  int16,
  int32,
  int64,
  uint1,
  uint2,
  uint4,
  uint8,
  uint16,
  uint32,
  uint64,
  float4_e2m1fn,
  float6_e2m3fn,
  float6_e3m2fn,
  float8_e3m4,
  float8_e4m3,
  float8_e4m3b11fnuz,
  float8_e4m3fn,
  float8_e4m3fnuz,
  float8_e5m2,
  float8_e5m2fnuz,
  float8_e8m0fnu,
  bfloat16,
  float16,
  float32,
  float64,
  complex64,
  complex128,
  float0,          // the tangent type of integers and booleans; carries no value
  key_fry,         // PRNG keys: threefry2x32
  key_rbg,         // rbg
  key_unsafe_rbg,  // unsafe_rbg
  token,           // orders side effects; never an element of an array
};

enum class Kind : std::uint8_t {
  boolean,
  signed_integer,
  unsigned_integer,
  floating,
  complex,
  key,
  float0,
  token,
};

struct DTypeRow {
  DType dtype;
  std::string_view name;        // as NumPy and jax.numpy call it
  std::string_view short_name;  // as jaxpr text shows it
  std::string_view stablehlo;   // the element type in StableHLO text; keys are uint32 words there
  Kind kind;
  std::uint16_t bits;          // of the value
  std::uint8_t storage_bytes;  // of one element in a buffer; narrower types take one byte each
  std::uint8_t exponent_bits;  // of floating types and of the parts of complex ones, else 0
  std::uint8_t mantissa_bits;  // stored mantissa bits, as finfo's nmant
};

// clang-format off
inline constexpr std::array<DTypeRow, 37> dtype_table{{
    {DType::bool_, "bool", "bool", "i1", Kind::boolean, 8, 1, 0, 0},
    {DType::int1, "int1", "i1", "i1", Kind::signed_integer, 1, 1, 0, 0},
    {DType::int2, "int2", "i2", "i2", Kind::signed_integer, 2, 1, 0, 0},
    {DType::int4, "int4", "i4", "i4", Kind::signed_integer, 4, 1, 0, 0},
    {DType::int8, "int8", "i8", "i8", Kind::signed_integer, 8, 1, 0, 0},
    {DType::int16, "int16", "i16", "i16", Kind::signed_integer, 16, 2, 0, 0},
    {DType::int32, "int32", "i32", "i32", Kind::signed_integer, 32, 4, 0, 0},
    {DType::int64, "int64", "i64", "i64", Kind::signed_integer, 64, 8, 0, 0},
    {DType::uint1, "uint1", "u1", "ui1", Kind::unsigned_integer, 1, 1, 0, 0},
    {DType::uint2, "uint2", "u2", "ui2", Kind::unsigned_integer, 2, 1, 0, 0},
    {DType::uint4, "uint4", "u4", "ui4", Kind::unsigned_integer, 4, 1, 0, 0},
    {DType::uint8, "uint8", "u8", "ui8", Kind::unsigned_integer, 8, 1, 0, 0},
    {DType::uint16, "uint16", "u16", "ui16", Kind::unsigned_integer, 16, 2, 0, 0},
    {DType::uint32, "uint32", "u32", "ui32", Kind::unsigned_integer, 32, 4, 0, 0},
    {DType::uint64, "uint64", "u64", "ui64", Kind::unsigned_integer, 64, 8, 0, 0},
    {DType::float4_e2m1fn, "float4_e2m1fn", "f4_e2m1fn", "f4E2M1FN", Kind::floating, 4, 1, 2, 1},
    {DType::float6_e2m3fn, "float6_e2m3fn", "f6_e2m3fn", "f6E2M3FN", Kind::floating, 6, 1, 2, 3},
    {DType::float6_e3m2fn, "float6_e3m2fn", "f6_e3m2fn", "f6E3M2FN", Kind::floating, 6, 1, 3, 2},
    {DType::float8_e3m4, "float8_e3m4", "f8_e3m4", "f8E3M4", Kind::floating, 8, 1, 3, 4},
    {DType::float8_e4m3, "float8_e4m3", "f8_e4m3", "f8E4M3", Kind::floating, 8, 1, 4, 3},
    {DType::float8_e4m3b11fnuz, "float8_e4m3b11fnuz", "f8_e4m3b11fnuz", "f8E4M3B11FNUZ", Kind::floating, 8, 1, 4, 3},
    {DType::float8_e4m3fn, "float8_e4m3fn", "f8_e4m3fn", "f8E4M3FN", Kind::floating, 8, 1, 4, 3},
    {DType::float8_e4m3fnuz, "float8_e4m3fnuz", "f8_e4m3fnuz", "f8E4M3FNUZ", Kind::floating, 8, 1, 4, 3},
    {DType::float8_e5m2, "float8_e5m2", "f8_e5m2", "f8E5M2", Kind::floating, 8, 1, 5, 2},
    {DType::float8_e5m2fnuz, "float8_e5m2fnuz", "f8_e5m2fnuz", "f8E5M2FNUZ", Kind::floating, 8, 1, 5, 2},
    {DType::float8_e8m0fnu, "float8_e8m0fnu", "f8_e8m0fnu", "f8E8M0FNU", Kind::floating, 8, 1, 8, 0},
    {DType::bfloat16, "bfloat16", "bf16", "bf16", Kind::floating, 16, 2, 8, 7},
    {DType::float16, "float16", "f16", "f16", Kind::floating, 16, 2, 5, 10},
    {DType::float32, "float32", "f32", "f32", Kind::floating, 32, 4, 8, 23},
    {DType::float64, "float64", "f64", "f64", Kind::floating, 64, 8, 11, 52},
    {DType::complex64, "complex64", "c64", "complex<f32>", Kind::complex, 64, 8, 8, 23},
    {DType::complex128, "complex128", "c128", "complex<f64>", Kind::complex, 128, 16, 11, 52},
    {DType::float0, "float0", "float0", "i1", Kind::float0, 8, 1, 0, 0},
    {DType::key_fry, "key<fry>", "key<fry>", "ui32", Kind::key, 64, 8, 0, 0},
    {DType::key_rbg, "key<rbg>", "key<rbg>", "ui32", Kind::key, 128, 16, 0, 0},
    {DType::key_unsafe_rbg, "key<urbg>", "key<urbg>", "ui32", Kind::key, 128, 16, 0, 0},
    {DType::token, "token", "Tok", "!stablehlo.token", Kind::token, 0, 0, 0, 0},
}};
// clang-format on

// The row of the table of dtypes.
constexpr const DTypeRow& dtype_row(DType dtype) { return dtype_table[static_cast<std::size_t>(dtype)]; }

// The full name: "float32".
constexpr std::string_view dtype_name(DType dtype) { return dtype_row(dtype).name; }
// The name in jaxprs: "f32".
constexpr std::string_view short_name(DType dtype) { return dtype_row(dtype).short_name; }
// The name of the StableHLO element type: "f32", "ui8".
constexpr std::string_view stablehlo_name(DType dtype) { return dtype_row(dtype).stablehlo; }
// The kind: bool, signed or unsigned integer, floating, complex, key and so on.
constexpr Kind kind(DType dtype) { return dtype_row(dtype).kind; }
// The number of bits of one element.
constexpr int bits(DType dtype) { return dtype_row(dtype).bits; }
// Bytes of one element in a buffer.
constexpr std::int64_t storage_size(DType dtype) { return dtype_row(dtype).storage_bytes; }

// True for bool.
constexpr bool is_bool(DType dtype) { return dtype == DType::bool_; }
// True for signed integers.
constexpr bool is_signed(DType dtype) { return kind(dtype) == Kind::signed_integer; }
// True for unsigned integers.
constexpr bool is_unsigned(DType dtype) { return kind(dtype) == Kind::unsigned_integer; }
// True for signed and unsigned integers.
constexpr bool is_integer(DType dtype) { return is_signed(dtype) || is_unsigned(dtype); }
// True for real floating-point types.
constexpr bool is_floating(DType dtype) { return kind(dtype) == Kind::floating; }
// True for complex types.
constexpr bool is_complex(DType dtype) { return kind(dtype) == Kind::complex; }
// True for floating-point and complex types.
constexpr bool is_inexact(DType dtype) { return is_floating(dtype) || is_complex(dtype); }
// True for integer, floating-point and complex types.
constexpr bool is_numeric(DType dtype) { return is_integer(dtype) || is_inexact(dtype); }
// True for dtypes of PRNG keys.
constexpr bool is_key(DType dtype) { return kind(dtype) == Kind::key; }

// True if the values are narrower than the byte they are stored in (the upper bits are zero, or
// copies of the sign bit for signed integers).
constexpr bool is_sub_byte(DType dtype) { return is_numeric(dtype) && bits(dtype) < 8; }

// Number of uint32 words of one PRNG key; 0 for other dtypes.
constexpr std::int64_t key_words(DType dtype) { return is_key(dtype) ? bits(dtype) / 32 : 0; }

// The dtype of real parts: complex64 -> float32, complex128 -> float64; other dtypes are unchanged.
constexpr DType real_dtype(DType dtype) {
  if (dtype == DType::complex64) return DType::float32;
  return dtype == DType::complex128 ? DType::float64 : dtype;
}

// The dtype with imaginary parts: float64 -> complex128; narrower floating types -> complex64; other dtypes are
// unchanged.
constexpr DType complex_dtype(DType dtype) {
  if (!is_floating(dtype)) return dtype;
  return dtype == DType::float64 ? DType::complex128 : DType::complex64;
}

// The dtype of an array made from a host value of `dtype`: 64-bit types become 32-bit unless x64 is on.
constexpr DType canonicalize(DType dtype, bool x64) {
  if (x64) return dtype;
  switch (dtype) {
    case DType::int64:
      return DType::int32;
    case DType::uint64:
      return DType::uint32;
    case DType::float64:
      return DType::float32;
    case DType::complex128:
      return DType::complex64;
    default:
      return dtype;
  }
}

// The full name as a string.
inline std::string to_string(DType dtype) { return std::string(dtype_name(dtype)); }

// The dtype of a full name ("float32"); also "bool_". Empty for an unknown name.
std::optional<DType> dtype_from_name(std::string_view name);
// The dtype of a jaxpr name ("f32").
std::optional<DType> dtype_from_short_name(std::string_view name);
// The dtype of a StableHLO element type ("ui8"; "i1" is bool, never int1).
std::optional<DType> dtype_from_stablehlo_name(std::string_view name);

// NumPy's finfo of a floating dtype (of the parts, for a complex one).
struct FloatInfo {
  int bits;
  int exponent_bits;
  int mantissa_bits;
  int precision;              // decimal digits of precision
  double eps;                 // distance from 1 to the next larger value
  double epsneg;              // distance from 1 to the next smaller value
  double max;                 // greatest finite value
  double min;                 // least finite value
  double tiny;                // least positive normal value
  double smallest_subnormal;  // least positive value
  bool has_infinity;
  bool has_nan;
  bool has_negative_zero;
};

struct IntInfo {
  int bits;
  std::int64_t min;
  std::uint64_t max;
};

// The limits of a floating-point or complex dtype; throws TypeError for another kind.
FloatInfo finfo(DType dtype);
// The limits of an integer dtype, bool as 0..1; throws TypeError for another kind.
IntInfo iinfo(DType dtype);

}  // namespace capibara
