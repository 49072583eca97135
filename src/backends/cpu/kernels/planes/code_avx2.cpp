// The loops over planes for processors with AVX2; all of the templates are compiled for this target, and the standard
// library is included before it.
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "backends/cpu/kernels/planes/code.h"

#if defined(__x86_64__)

#pragma GCC target("avx2,fma")
#include "backends/cpu/kernels/planes/lanes.h"

namespace capibara::cpu {

template <class T>
PlaneCode<T> planes_avx2() {
  return planes_of<T, 32>();
}
template PlaneCode<float> planes_avx2();
template PlaneCode<double> planes_avx2();

}  // namespace capibara::cpu

#endif
