// The bytecode codes of types without parts, and their names in our syntax tree.
#pragma once

#include <cstdint>
#include <string_view>

namespace capibara::stablehlo {

struct TypeCode {
  std::uint64_t code;
  std::string_view name;
};

inline constexpr std::uint64_t stablehlo_token = 0;  // among that dialect's types

// StableHLO's signless integers are signed in VHLO.
inline constexpr TypeCode vhlo_type_codes[] = {
    {0, "i1"},          {2, "bf16"},        {3, "f16"},
    {4, "f32"},         {5, "f64"},         {6, "f8E4M3FN"},
    {7, "f8E5M2"},      {9, "index"},       {10, "i4"},
    {11, "i8"},         {12, "i16"},        {13, "i32"},
    {14, "i64"},        {15, "ui4"},        {16, "ui8"},
    {17, "ui16"},       {18, "ui32"},       {19, "ui64"},
    {27, "f8E4M3FNUZ"}, {28, "f8E5M2FNUZ"}, {29, "f8E4M3B11FNUZ"},
    {31, "i2"},         {32, "ui2"},        {34, "tf32"},
    {35, "f8E4M3"},     {36, "f8E3M4"},     {37, "f4E2M1FN"},
    {38, "f6E2M3FN"},   {39, "f6E3M2FN"},   {40, "f8E8M0FNU"},
};

// Integers are handled separately: their width is a number.
inline constexpr TypeCode builtin_type_codes[] = {
    {1, "index"}, {3, "bf16"}, {4, "f16"}, {5, "f32"}, {6, "f64"},
};

}  // namespace capibara::stablehlo
