// jax.lax: the discrete Fourier transform.
#include <capibara/lax.h>
#include <capibara/primitive.h>

#include "library/numpy/promote.h"
#include "transforms/flat.h"

namespace capibara::jax::lax {

Array fft(const Array& x, FftType type, const Ints& fft_lengths) {
  static const Primitive p = primitive("fft");
  if (type == FftType::rfft && is_complex(x.dtype())) {
    throw ValueError(concat("fft: only real valued inputs supported for rfft, got ", to_string(x.type())));
  }
  DType inexact = inexact_dtype(x.dtype());
  DType dtype = type == FftType::rfft ? inexact : complex_dtype(inexact);
  // A function of its own in the program, as in jax.
  auto body = [&](std::span<const Array> args) -> Arrays {
    Array input = convert_element_type(args[0], dtype);
    if (fft_lengths.empty()) return {input};
    return capibara::bind(p, Arrays{input}, {{"fft_type", static_cast<int64_t>(type)}, {"fft_lengths", fft_lengths}});
  };
  Program program = stage(body, Types{x.type()}, "fft").program;
  return call_program(program, Arrays{x}, "fft")[0];
}

}  // namespace capibara::jax::lax
