// Stores that bypass the caches, for results too large to stay in them.
//
// On x86 a store first reads its line into the cache, which costs a pass over the whole result. Arm processors detect
// long runs of stores and skip that read themselves.
#pragma once

#include <cstdint>
#include <cstring>

namespace capibara::cpu {

#if defined(__x86_64__)
inline constexpr bool has_streaming = true;
#else
inline constexpr bool has_streaming = false;
#endif

inline constexpr int64_t min_streamed_bytes = 16 << 20;  // half of a socket's last-level cache

// True if a result of this many bytes should be streamed; its rows are written as whole vectors, which must be aligned.
inline bool streams(const void* result, int64_t bytes, int64_t row_bytes) {
  return has_streaming && bytes >= min_streamed_bytes && reinterpret_cast<std::uintptr_t>(result) % 64 == 0 &&
         row_bytes % 64 == 0;
}

// `to` is a multiple of the vector's size. Vectors of 16 bytes are stored normally.
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

// At the end of a task: makes streamed data visible to other threads before the task is reported done.
inline void finish_streaming() {
#if defined(__x86_64__)
  asm volatile("sfence" ::: "memory");
#endif
}

}  // namespace capibara::cpu
