// Vectorised loops of the functions, compiled once for each kind of processor; only plain types cross between
// files.
#pragma once

#include <cstdint>

namespace capibara::cpu {

// Computes an iterative function for `count` elements, a multiple of 16.
template <class T>
using SeriesLoop = void (*)(const T* const* in, T* out, std::int64_t count);

inline constexpr std::int64_t gamma_block = 256;

// Up to gamma_block elements of one key: `first` is the index of the first among the key's elements.
template <class T>
struct GammaBlock {
  const std::uint32_t* key;
  std::uint64_t first;
  std::int64_t count;
  const T* a;
  T* out;
  bool log_space;
};

inline constexpr int series_count = 5;

// Empty if the processor has nothing better than the reference kernels.
template <class T>
struct FunctionCode {
  SeriesLoop<T> series[series_count] = {};  // in the order of math::iterative_formulas
  void (*gamma)(const GammaBlock<T>&) = nullptr;
};

template <class T>
FunctionCode<T> function_code_avx2();
template <class T>
FunctionCode<T> function_code_avx512();

}  // namespace capibara::cpu
