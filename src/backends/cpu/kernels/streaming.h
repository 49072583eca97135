// Stores that bypass the caches, for results too large to stay in them.
//
// A store on x86 reads the line that it changes into the cache first, which is a pass over the whole result. Arm's
// processors notice long runs of stores and leave that read out by themselves.
#pragma once

#include <cstdint>
#include <cstring>

namespace capibara::cpu {

#if defined(__x86_64__)
inline constexpr bool has_streaming = true;
#else
inline constexpr bool has_streaming = false;
#endif

inline constexpr int64_t min_streamed_bytes = 16 << 20;  // half of what a socket's last cache holds

// Whether to stream a result of so many bytes, whose rows are written by whole vectors: those must be aligned.
inline bool streams(const void* result, int64_t bytes, int64_t row_bytes) {
  return has_streaming && bytes >= min_streamed_bytes && reinterpret_cast<std::uintptr_t>(result) % 64 == 0 &&
         row_bytes % 64 == 0;
}

// To an address that is a multiple of the vector's size. Vectors of 16 bytes are stored as others are.
template <class V>
inline __attribute__((always_inline)) void stream(void* to, V value) {
#if defined(__x86_64__) && defined(__clang__)
  __builtin_nontemporal_store(value, static_cast<V*>(to));
#elif defined(__x86_64__)
  auto& bytes = *static_cast<char(*)[sizeof(V)]>(to);
  if constexpr (sizeof(V) == 64)
    asm("vmovntps %1, %0" : "=m"(bytes) : "v"(value));
  else if constexpr (sizeof(V) == 32)
    asm("vmovntps %1, %0" : "=m"(bytes) : "x"(value));
  else
    std::memcpy(to, &value, sizeof value);
#else
  std::memcpy(to, &value, sizeof value);
#endif
}

// At the end of a task: other threads see what it streamed before they see that it is done.
inline void finish_streaming() {
#if defined(__x86_64__)
  asm volatile("sfence" ::: "memory");
#endif
}

}  // namespace capibara::cpu
