// The enumerations of VHLO: the attribute code of each, and its words.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace capibara::stablehlo {

struct VhloEnumeration {
  std::uint64_t code;
  std::string_view kind;  // in StableHLO
  std::array<std::string_view, 6> words;
};

inline constexpr VhloEnumeration vhlo_enumerations[] = {
    {3, "comparison_direction", {"EQ", "NE", "GE", "GT", "LE", "LT"}},
    {4, "comparison_type", {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"}},
    {5,
     "custom_call_api_version",
     {"API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING",
      "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI"}},
    {7, "fft_type", {"FFT", "IFFT", "RFFT", "IRFFT"}},
    {11, "precision", {"DEFAULT", "HIGH", "HIGHEST"}},
    {12, "rng_algorithm", {"DEFAULT", "THREE_FRY", "PHILOX"}},
    {13, "rng_distribution", {"", "UNIFORM", "NORMAL"}},
    {16, "transpose", {"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}},
    {19, "result_accuracy_mode", {"DEFAULT", "HIGHEST", "TOLERANCE"}},
};

inline const VhloEnumeration* find_vhlo_enumeration(std::uint64_t code) {
  for (const VhloEnumeration& one : vhlo_enumerations) {
    if (one.code == code) return &one;
  }
  return nullptr;
}

inline const VhloEnumeration* find_vhlo_enumeration(std::string_view kind) {
  for (const VhloEnumeration& one : vhlo_enumerations) {
    if (one.kind == kind) return &one;
  }
  return nullptr;
}

}  // namespace capibara::stablehlo
