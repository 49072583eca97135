// Packing with AVX-512 vectors. All return false if the processor has none: then nothing was written.
#pragma once

#include <cstdint>
#include <type_traits>

namespace capibara::cpu {

#if defined(__x86_64__)

// Transposes `width` rows with contiguous k to out[k][row].
bool transpose_avx512(const std::uint32_t* const* rows, int64_t k, int64_t width, std::uint32_t* out);
bool transpose_avx512(const std::uint64_t* const* rows, int64_t k, int64_t width, std::uint64_t* out);
// Copies `count` pieces of 128 bytes, `step` bytes apart, to contiguous memory.
bool copy_avx512(const void* from, int64_t step, int64_t count, void* to);

template <class T>
bool transpose_avx512(const T* const* rows, int64_t k, int64_t width, T* out) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  static_assert(sizeof(T) == sizeof(Bits));
  return transpose_avx512(reinterpret_cast<const Bits* const*>(rows), k, width, reinterpret_cast<Bits*>(out));
}

#else

template <class T>
bool transpose_avx512(const T* const*, int64_t, int64_t, T*) {
  return false;
}
inline bool copy_avx512(const void*, int64_t, int64_t, void*) { return false; }

#endif

}  // namespace capibara::cpu
