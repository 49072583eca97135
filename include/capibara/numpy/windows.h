// jax.numpy: window functions of M points.
#pragma once

#include <capibara/array.h>

namespace capibara::jax::numpy {

Array bartlett(int64_t M);
Array blackman(int64_t M);
Array hamming(int64_t M);
Array hanning(int64_t M);
Array kaiser(int64_t M, const Array& beta);

}  // namespace capibara::jax::numpy
