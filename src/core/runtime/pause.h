// The pause of a thread that polls a value which another thread is about to change.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace capibara {

// Takes some tens of nanoseconds, in which the processor serves its other hardware thread.
inline void pause_briefly() {
#if defined(__aarch64__)
  asm volatile("isb");
#elif defined(__x86_64__)
  _mm_pause();
#endif
}

}  // namespace capibara
