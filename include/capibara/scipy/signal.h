// jax.scipy.signal: convolutions, correlations, trends, and spectra of segments.
#pragma once

#include <capibara/lax.h>

#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

namespace capibara::jax::scipy::signal {

// mode: "full", "same" as in1, or "valid": only where the inputs overlap fully.
struct ConvolveOptions {
  std::string mode = "full";
  std::string method = "auto";  // "direct" is the same; "fft" by Fourier transforms
  std::string precision;
};
// The convolution of two arrays in all dimensions.
Array convolve(const Array& in1, const Array& in2, const ConvolveOptions& options = {});
// The cross-correlation of two arrays in all dimensions.
Array correlate(const Array& in1, const Array& in2, const ConvolveOptions& options = {});

struct Convolve2dOptions {
  std::string mode = "full";
  std::string precision;
};
// The convolution of two matrices.
Array convolve2d(const Array& in1, const Array& in2, const Convolve2dOptions& options = {});
// The cross-correlation of two matrices.
Array correlate2d(const Array& in1, const Array& in2, const Convolve2dOptions& options = {});

struct FftconvolveOptions {
  std::string mode = "full";
  std::optional<Ints> axes;  // the others are batch axes; by default all
};
// The convolution of two arrays by Fourier transforms.
Array fftconvolve(const Array& in1, const Array& in2, const FftconvolveOptions& options = {});

struct DetrendOptions {
  int64_t axis = -1;
  std::string type = "linear";  // or "constant": the mean is removed
  Ints bp = {0};                // breakpoints between lines
};
// The data without its mean, or without the best-fitting lines of its parts.
Array detrend(const Array& data, const DetrendOptions& options = {});

// A window, by name or as an array.
using Window = std::variant<std::string, Array>;
// How each segment is detrended: not at all, by removing a kind of trend, or by a function.
using Detrending = std::variant<std::monostate, std::string, std::function<Array(const Array&)>>;

struct SpectrumOptions {
  Array fs = 1.0;  // sampling frequency, in samples per unit of time
  Window window = std::string("hann");
  std::optional<int64_t> nperseg, noverlap, nfft;
  Detrending detrend = std::string("constant");
  bool return_onesided = true;
  std::string scaling = "density";  // or spectrum
  int64_t axis = -1;
  std::string average = "mean";  // or median
};
// Frequencies and the power spectral density, by Welch's method.
std::pair<Array, Array> welch(const Array& x, const SpectrumOptions& options = {});
// Frequencies and the cross spectral density of two signals, by Welch's method.
std::pair<Array, Array> csd(const Array& x, const std::optional<Array>& y, const SpectrumOptions& options = {});

struct StftOptions {
  Array fs = 1.0;
  Window window = std::string("hann");
  std::optional<int64_t> nperseg = 256, noverlap, nfft;
  Detrending detrend;
  bool return_onesided = true;
  std::string boundary = "zeros";  // "" for none, or even, odd, constant
  bool padded = true;
  int64_t axis = -1;
};
// Frequencies, times, and the Fourier transforms of overlapping segments.
std::tuple<Array, Array, Array> stft(const Array& x, const StftOptions& options = {});

struct IstftOptions {
  Array fs = 1.0;
  Window window = std::string("hann");
  std::optional<int64_t> nperseg, noverlap, nfft;
  bool input_onesided = true;
  bool boundary = true;
  int64_t time_axis = -1, freq_axis = -2;
};
// Times and signal of the inverse short-time Fourier transform.
std::pair<Array, Array> istft(const Array& Zxx, const IstftOptions& options = {});

}  // namespace capibara::jax::scipy::signal
