// The transform of one line; a long one in two passes over lanes, on all threads.
#pragma once

#include <cstdint>

namespace capibara::cpu::fft {

// A complex line of any length: pairs from `in` to `out`, which do not overlap. The inverse is not scaled.
template <class R>
void transform_line(int64_t length, const R* in, R* out, bool inverse = false, R scale = 1);

}  // namespace capibara::cpu::fft
