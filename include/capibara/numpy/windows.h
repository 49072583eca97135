// jax.numpy: window functions of M points.
#pragma once

#include <capibara/array.h>

namespace capibara::jax::numpy {

// A triangular window.
Array bartlett(int64_t M);
// The Blackman window.
Array blackman(int64_t M);
// The Hamming window.
Array hamming(int64_t M);
// The Hann window.
Array hanning(int64_t M);
// The Kaiser window; beta sets its width.
Array kaiser(int64_t M, const Array& beta);

}  // namespace capibara::jax::numpy
