// jax.numpy.fft: discrete Fourier transforms along chosen axes, their frequencies and shifts.
#pragma once

#include <capibara/lax.h>
#include <capibara/numpy/axis.h>

#include <optional>
#include <string>

namespace capibara::jax::numpy::fft {

// norm: "" and "backward" scale the inverse by 1/n, "ortho" both by 1/sqrt(n), "forward" the forward transform by 1/n.
struct FftOptions {
  std::optional<int64_t> n;          // the transform length: the input is truncated or padded with zeros
  std::optional<int64_t> axis = -1;  // nullopt: all axes
  std::string norm;
};
// The discrete Fourier transform along one axis.
Array fft(const Array& a, const FftOptions& options = {});
// The inverse of the discrete Fourier transform along one axis.
Array ifft(const Array& a, const FftOptions& options = {});
// The non-negative frequencies of the transform of real data along one axis.
Array rfft(const Array& a, const FftOptions& options = {});
// Real data from the non-negative frequencies of its transform: the inverse of rfft.
Array irfft(const Array& a, const FftOptions& options = {});
// The real spectrum of a signal with Hermitian symmetry, given by its first half.
Array hfft(const Array& a, const FftOptions& options = {});
// The first half of the signal with Hermitian symmetry that has this real spectrum.
Array ihfft(const Array& a, const FftOptions& options = {});

struct FftnOptions {
  std::optional<Ints> s;     // the transform lengths, one for each axis
  std::optional<Ints> axes;  // by default the last ones, as many as there are lengths
  std::string norm;
};
// The discrete Fourier transform along several axes, by default all.
Array fftn(const Array& a, const FftnOptions& options = {});
// The inverse of fftn.
Array ifftn(const Array& a, const FftnOptions& options = {});
// The transform of real data along several axes; only non-negative frequencies along the last.
Array rfftn(const Array& a, const FftnOptions& options = {});
// The inverse of rfftn.
Array irfftn(const Array& a, const FftnOptions& options = {});

struct Fft2Options {
  std::optional<Ints> s;
  Ints axes = {-2, -1};
  std::string norm;
};
// The discrete Fourier transform along two axes.
Array fft2(const Array& a, const Fft2Options& options = {});
// The inverse of fft2.
Array ifft2(const Array& a, const Fft2Options& options = {});
// The transform of real data along two axes; only non-negative frequencies along the last.
Array rfft2(const Array& a, const Fft2Options& options = {});
// The inverse of rfft2.
Array irfft2(const Array& a, const Fft2Options& options = {});

struct FrequencyOptions {
  Array d = 1.0;  // the time between samples
  std::optional<DType> dtype;
};
// The frequencies of the entries of a transform of n samples.
Array fftfreq(int64_t n, const FrequencyOptions& options = {});
// The frequencies of the entries of rfft of n samples.
Array rfftfreq(int64_t n, const FrequencyOptions& options = {});

// Moves the zero frequency to the middle of each axis.
Array fftshift(const Array& x, const Axis& axes = {});
// The inverse of fftshift.
Array ifftshift(const Array& x, const Axis& axes = {});

}  // namespace capibara::jax::numpy::fft
