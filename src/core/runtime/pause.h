// What a thread does between two looks at a value that another thread is about to change.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace capibara {

// Some tens of nanoseconds, in which the processor serves its other hardware thread.
inline void pause_briefly() {
#if defined(__aarch64__)
  asm volatile("isb");
#elif defined(__x86_64__)
  _mm_pause();
#endif
}

}  // namespace capibara
