// Chooses the loops over planes for the current processor.
#include "backends/cpu/kernels/planes/code.h"

#include "backends/cpu/kernels/planes/lanes.h"
#include "core/runtime/processor.h"

namespace capibara::cpu {

template <class T>
const PlaneCode<T>& plane_code() {
  static const PlaneCode<T> code = [] {
#if defined(__x86_64__)
    if (has_avx512()) return planes_avx512<T>();
    if (has_avx2()) return planes_avx2<T>();
#endif
    return planes_of<T, 16>();
  }();
  return code;
}
template const PlaneCode<float>& plane_code();
template const PlaneCode<double>& plane_code();

}  // namespace capibara::cpu
