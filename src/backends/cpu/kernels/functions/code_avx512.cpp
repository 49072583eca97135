// The vectorised functions for processors with AVX-512.
//
// In functions without the target, g++ splits vectors before inlining: so all of these templates are read under
// it. The standard library is included before, so that no other file ends up with its code for this processor.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "backends/cpu/kernels/functions/code.h"

#if defined(__x86_64__)

#include <immintrin.h>

#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,fma")
#include "backends/cpu/kernels/functions/series_lanes.h"

namespace capibara::cpu {

template <class T>
FunctionCode<T> function_code_avx512() {
  return code_of<T, 64>();
}
template FunctionCode<float> function_code_avx512();
template FunctionCode<double> function_code_avx512();

}  // namespace capibara::cpu

#endif
