// jax.numpy.fft: discrete Fourier transforms along chosen axes, their frequencies and shifts.
#pragma once

#include <capibara/lax.h>
#include <capibara/numpy/axis.h>

#include <optional>
#include <string>

namespace capibara::jax::numpy::fft {

// norm: "" and "backward" scale the inverse by 1/n, "ortho" both by 1/sqrt(n), "forward" the forward transform by 1/n.
struct FftOptions {
  std::optional<int64_t> n;          // the length transformed: the input is cut or padded with zeros
  std::optional<int64_t> axis = -1;  // nullopt: all axes
  std::string norm;
};
Array fft(const Array& a, const FftOptions& options = {});
Array ifft(const Array& a, const FftOptions& options = {});
Array rfft(const Array& a, const FftOptions& options = {});
Array irfft(const Array& a, const FftOptions& options = {});
Array hfft(const Array& a, const FftOptions& options = {});
Array ihfft(const Array& a, const FftOptions& options = {});

struct FftnOptions {
  std::optional<Ints> s;     // the lengths transformed, one for each axis
  std::optional<Ints> axes;  // by default the last ones, as many as there are lengths
  std::string norm;
};
Array fftn(const Array& a, const FftnOptions& options = {});
Array ifftn(const Array& a, const FftnOptions& options = {});
Array rfftn(const Array& a, const FftnOptions& options = {});
Array irfftn(const Array& a, const FftnOptions& options = {});

struct Fft2Options {
  std::optional<Ints> s;
  Ints axes = {-2, -1};
  std::string norm;
};
Array fft2(const Array& a, const Fft2Options& options = {});
Array ifft2(const Array& a, const Fft2Options& options = {});
Array rfft2(const Array& a, const Fft2Options& options = {});
Array irfft2(const Array& a, const Fft2Options& options = {});

struct FrequencyOptions {
  Array d = 1.0;  // the time between samples
  std::optional<DType> dtype;
};
Array fftfreq(int64_t n, const FrequencyOptions& options = {});
Array rfftfreq(int64_t n, const FrequencyOptions& options = {});

// The zero frequency to the middle, and back.
Array fftshift(const Array& x, const Axis& axes = {});
Array ifftshift(const Array& x, const Axis& axes = {});

}  // namespace capibara::jax::numpy::fft
