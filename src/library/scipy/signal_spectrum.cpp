// jax.scipy.signal: Fourier transforms of overlapping segments, spectral densities, and reconstruction from segments.
#include <capibara/scipy/signal.h>

#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/fft.h>
#include <capibara/numpy/manipulation.h>
#include <capibara/numpy/reductions.h>
#include <capibara/numpy/statistics.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/runtime/warning.h"
#include "lax/operators/promote.h"

namespace capibara::jax::scipy::signal {

namespace {

constexpr double pi = std::numbers::pi;

// ---- windows -----------------------------------------------------------------------------------------------------

struct CosineWindow {
  const char* name;
  std::vector<double> weights;  // of cos(0), cos(t), cos(2t) ...
};
const CosineWindow cosine_windows[] = {{"boxcar", {1}},
                                       {"hamming", {0.54, 0.46}},
                                       {"blackman", {0.42, 0.50, 0.08}},
                                       {"nuttall", {0.3635819, 0.4891775, 0.1365995, 0.0106411}},
                                       {"blackmanharris", {0.35875, 0.48829, 0.14128, 0.01168}},
                                       {"flattop", {0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368}}};

// Windows given by a formula for sample i of a symmetric window of m samples.
struct FormulaWindow {
  const char* name;
  double (*sample)(double i, double m);
};
const FormulaWindow formula_windows[] = {
    {"triang",
     [](double i, double m) {
       const double rank = std::min(i, m - 1 - i) + 1;
       return std::fmod(m, 2) == 0 ? (2 * rank - 1) / m : 2 * rank / (m + 1);
     }},
    {"bartlett", [](double i, double m) { return 1 - std::abs(2 * i / (m - 1) - 1); }},
    {"cosine", [](double i, double m) { return std::sin(pi / m * (i + 0.5)); }},
    {"bohman",
     [](double i, double m) {
       const double x = std::abs(2 * i / (m - 1) - 1);
       return i == 0 || i == m - 1 ? 0 : (1 - x) * std::cos(pi * x) + std::sin(pi * x) / pi;
     }},
    {"parzen",
     [](double i, double m) {
       const double distance = std::abs(i - (m - 1) / 2), x = distance / (m / 2);
       return distance <= (m - 1) / 4 ? 1 - 6 * x * x + 6 * x * x * x : 2 * std::pow(1 - x, 3);
     }},
    {"barthann",
     [](double i, double m) {
       const double x = std::abs(i / (m - 1) - 0.5);
       return 0.62 - 0.48 * x + 0.38 * std::cos(2 * pi * x);
     }},
};

// A window of n samples, periodic in n.
Array named_window(const std::string& name, int64_t n, DType dtype) {
  if (name == "hann") {
    if (n == 1) return lax::full({1}, Array(1), dtype);
    const Array angle = lax::iota(default_float(), n) * (pi / static_cast<double>(n));
    return lax::convert_element_type(lax::square(lax::sin(angle)), dtype, false);
  }
  for (const CosineWindow& window : cosine_windows) {
    if (name != window.name) continue;
    std::vector<double> values(static_cast<std::size_t>(n), n == 1 ? 1.0 : 0.0);
    for (std::size_t i = 0; n > 1 && i < values.size(); ++i) {
      const double angle = 2 * pi * static_cast<double>(i) / static_cast<double>(n) - pi;
      for (std::size_t k = 0; k < window.weights.size(); ++k)
        values[i] += window.weights[k] * std::cos(static_cast<double>(k) * angle);
    }
    return lax::convert_element_type(array<double>(values), dtype, false);
  }
  for (const FormulaWindow& window : formula_windows) {
    if (name != window.name) continue;
    std::vector<double> values(static_cast<std::size_t>(n), 1.0);
    for (int64_t i = 0; n > 1 && i < n; ++i) {
      values[static_cast<std::size_t>(i)] = window.sample(static_cast<double>(i), static_cast<double>(n + 1));
    }
    return lax::convert_element_type(array<double>(values), dtype, false);
  }
  std::string known = "hann";
  for (const CosineWindow& window : cosine_windows) known += concat(", ", window.name);
  for (const FormulaWindow& window : formula_windows) known += concat(", ", window.name);
  throw ValueError(concat("signal: unknown window '", name, "'; known are ", known));
}

// The window and the length of the segments; an array determines its own length.
std::pair<Array, int64_t> window_of(const Window& window, std::optional<int64_t> nperseg, int64_t input_length,
                                    DType dtype) {
  if (const std::string* name = std::get_if<std::string>(&window)) {
    int64_t length = nperseg.value_or(input_length);
    if (length > input_length) {
      warn(
          concat("nperseg=", length, " is greater than input_length=", input_length, ", using nperseg=", input_length));
      length = input_length;
    }
    return {named_window(*name, length, dtype), length};
  }
  const Array values = lax::convert_element_type(std::get<Array>(window), dtype, false);
  if (values.ndim() != 1) throw ValueError(concat("signal: window must be 1-D, got ", to_string(values.type())));
  const int64_t size = values.size();
  if (input_length < size)
    throw ValueError(concat("signal: the window has ", size, " entries, the input only ", input_length));
  if (nperseg && *nperseg != size)
    throw ValueError(concat("signal: nperseg is ", *nperseg, ", the window has ", size, " entries"));
  return {values, size};
}

// ---- segments ----------------------------------------------------------------------------------------------------

Array zeros_behind(const Array& x, int64_t count) {
  numpy::PadWidths widths(x.shape().size());
  widths.back() = {0, count};
  return numpy::pad(x, widths);
}

// n more samples at both ends, by reflecting the signal through its first and its last sample.
Array odd_extension(const Array& x, int64_t n) {
  const int64_t axis = x.ndim() - 1, size = x.shape(axis);
  if (n < 1) return x;
  if (n > size - 1)
    throw ValueError(concat("signal: the extension of ", n, " samples must be shorter than the signal of ", size));
  const auto part = [&](int64_t begin, int64_t end) { return lax::slice_in_dim(x, begin, end, 1, axis); };
  const Array product = 2 * part(0, 1);
  const Array left = product - lax::rev(part(1, n + 1), {axis});
  const Array first_product = 2 * part(size - 1, size);
  const Array right = first_product - lax::rev(part(size - n - 1, size - 1), {axis});
  return lax::concatenate({left, x, right}, axis);
}

Array extended(const Array& x, int64_t n, const std::string& boundary) {
  if (boundary == "odd") return odd_extension(x, n);
  numpy::PadWidths widths(x.shape().size());
  widths.back() = {n, n};
  return numpy::pad(x, widths, {.mode = boundary == "even" ? "reflect" : boundary == "constant" ? "edge" : "constant"});
}

// [..., length] as [..., segment, nperseg].
Array segments(const Array& x, int64_t nperseg, int64_t step) {
  const int64_t count = (x.shape(-1) - nperseg) / step + 1;
  const Array positions = lax::iota(DType::int32, count);
  const Array start = positions * lax::full({}, Array(step), DType::int32);
  Array expanded = lax::expand_dims(start, {1});
  return x(ellipsis, expanded + lax::expand_dims(lax::iota(DType::int32, nperseg), {0}));
}

struct Helper {
  Array fs;
  Window window;
  std::optional<int64_t> nperseg, noverlap, nfft;
  Detrending detrend;
  bool return_onesided;
  std::string scaling;
  int64_t axis;
  bool stft;             // false: a density
  std::string boundary;  // "" for none
  bool padded;
};

Array detrended(const Array& frames, const Detrending& how, int64_t axis) {
  if (const std::string* type = std::get_if<std::string>(&how)) return detrend(frames, {.axis = -1, .type = *type});
  if (const auto* function = std::get_if<std::function<Array(const Array&)>>(&how)) {
    return numpy::moveaxis((*function)(numpy::moveaxis(frames, axis, -1)), -1, axis);
  }
  return frames;
}

Array transformed(const Array& x, const Array& window, const Helper& helper, int64_t step, int64_t nfft,
                  bool onesided) {
  Array frames = detrended(segments(x, window.size(), step), helper.detrend, helper.axis);
  if (is_complex(window.dtype())) frames = lax::convert_element_type(frames, complex_dtype(frames.dtype()));
  frames = lax::broadcast_to_rank(window, frames.ndim()) * frames;
  if (onesided) return numpy::fft::rfft(numpy::real(frames), {.n = nfft});
  return numpy::fft::fft(frames, {.n = nfft});
}

std::tuple<Array, Array, Array> spectra(const Array& first, const std::optional<Array>& second, Helper helper) {
  if (!helper.boundary.empty() && helper.boundary != "even" && helper.boundary != "odd" &&
      helper.boundary != "constant" && helper.boundary != "zeros") {
    throw ValueError(
        concat("signal: unknown boundary option '", helper.boundary, "', must be even, odd, constant, zeros or None"));
  }
  helper.axis = canonical_axis("signal", helper.axis, first.ndim());
  const std::size_t axis = static_cast<std::size_t>(helper.axis);
  const Arrays both = second ? promote_dtypes_inexact({first, *second}) : promote_dtypes_inexact({first});
  Array x = both[0], y = both.back();
  Shape outer = x.shape(), other = y.shape();
  if (second) {
    if (x.ndim() != y.ndim()) {
      throw ValueError(concat("signal: both inputs must have the same rank, got ", to_string(x.type()), " and ",
                              to_string(y.type())));
    }
    outer.erase(outer.begin() + helper.axis);
    other.erase(other.begin() + helper.axis);
    outer = lax::broadcast_shapes({outer, other});
    outer.insert(outer.begin() + helper.axis, std::min(x.shape()[axis], y.shape()[axis]));
  }
  const DType result_dtype = complex_dtype(x.dtype()), frequency_dtype = real_dtype(result_dtype);
  if (helper.nperseg && *helper.nperseg < 1)
    throw ValueError(concat("signal: nperseg must be a positive integer, got ", *helper.nperseg));
  const auto [window, nperseg] = window_of(helper.window, helper.nperseg, x.shape()[axis], x.dtype());
  const int64_t noverlap = helper.noverlap.value_or(nperseg / 2), nfft = helper.nfft.value_or(nperseg),
                step = nperseg - noverlap;
  if (x.size() == 0 || y.size() == 0) {
    const auto none = [&](DType dtype) { return lax::full(outer, Array(0), dtype); };
    return {none(frequency_dtype), none(frequency_dtype), none(result_dtype)};
  }
  x = numpy::moveaxis(x, helper.axis, -1);
  if (second) {
    y = numpy::moveaxis(y, helper.axis, -1);
    const int64_t length = std::max(x.shape(-1), y.shape(-1));
    x = zeros_behind(x, length - x.shape(-1));
    y = zeros_behind(y, length - y.shape(-1));
  }
  if (nfft < nperseg) throw ValueError(concat("signal: nfft must be at least nperseg, got ", nfft, " and ", nperseg));
  if (noverlap >= nperseg)
    throw ValueError(concat("signal: noverlap must be less than nperseg, got ", noverlap, " and ", nperseg));
  const auto prepared = [&, nperseg = nperseg](Array z) {
    if (!helper.boundary.empty()) z = extended(z, nperseg / 2, helper.boundary);
    if (!helper.padded) return z;
    const int64_t missing = ((-(z.shape(-1) - nperseg)) % step + step) % step;
    return zeros_behind(z, missing % nperseg);
  };
  x = prepared(x);
  if (second) y = prepared(y);
  if (helper.scaling != "density" && helper.scaling != "spectrum")
    throw ValueError(concat("signal: unknown scaling: ", helper.scaling));
  Array scale = helper.scaling == "density" ? 1.0 / (helper.fs * numpy::sum(window * window))
                                            : 1.0 / lax::square(numpy::sum(window));
  if (helper.stft) scale = numpy::sqrt(scale);
  scale = lax::convert_element_type(scale, complex_dtype(inexact_dtype(scale.dtype())), false);
  bool onesided = helper.return_onesided;
  if (onesided && is_complex(x.dtype())) {
    warn("Input data is complex, switching to return_onesided=False");
    onesided = false;
  }
  const numpy::fft::FrequencyOptions spacing = {.d = 1 / helper.fs, .dtype = frequency_dtype};
  const Array frequencies = onesided ? numpy::fft::rfftfreq(nfft, spacing) : numpy::fft::fftfreq(nfft, spacing);
  Array result = transformed(x, window, helper, step, nfft, onesided);
  if (second) {
    Array conjugated = lax::conj(result);
    result = conjugated * transformed(y, window, helper, step, nfft, onesided);
  } else if (!helper.stft)
    result = lax::conj(result) * result;
  result = result * scale;
  if (onesided && !helper.stft) {
    const std::optional<int64_t> end = nfft % 2 ? std::nullopt : std::optional<int64_t>(-1);
    result = result.at(ellipsis, slice(1, end)).multiply(2);
  }
  const double half = static_cast<double>(nperseg) / 2;
  const int64_t count = (x.shape(-1) - nperseg) / step + 1;
  Array time = (lax::iota(frequency_dtype, count) * static_cast<double>(step) + half) / helper.fs;
  if (!helper.boundary.empty()) time = time - half / helper.fs;
  result = lax::convert_element_type(result, result_dtype, false);
  if (!second && !helper.stft) result = lax::real(result);
  return {frequencies, time, numpy::moveaxis(result, -1, helper.axis)};
}

// Overlap-add of frames [..., frame, time], each shifted by `step` from the previous one.
Array overlapped(const Array& frames, int64_t step) {
  const int64_t count = frames.shape(-2), length = frames.shape(-1);
  Shape shape(frames.shape().begin(), frames.shape().end() - 2);
  shape.push_back(step * (count - 1) + length);
  const Array positions = lax::iota(DType::int32, count);
  const Array start = positions * lax::full({}, Array(step), DType::int32);
  const Array expanded = lax::expand_dims(start, {1});
  const Array places = expanded + lax::expand_dims(lax::iota(DType::int32, length), {0});
  return lax::full(shape, Array(0), frames.dtype()).at(ellipsis, places).add(frames);
}

}  // namespace

std::tuple<Array, Array, Array> stft(const Array& x, const StftOptions& options) {
  return spectra(x, std::nullopt,
                 {options.fs, options.window, options.nperseg, options.noverlap, options.nfft, options.detrend,
                  options.return_onesided, "spectrum", options.axis, true, options.boundary, options.padded});
}

std::pair<Array, Array> csd(const Array& x, const std::optional<Array>& y, const SpectrumOptions& options) {
  auto [frequencies, time, density] =
      spectra(x, y,
              {options.fs, options.window, options.nperseg, options.noverlap, options.nfft, options.detrend,
               options.return_onesided, options.scaling, options.axis, false, "", false});
  if (y) density = density + Array(std::complex<double>(0, 0));
  if (density.ndim() < 2 || density.size() == 0) return {frequencies, density};
  const int64_t count = density.shape(-1);
  if (count == 1) return {frequencies, lax::squeeze(density, {density.ndim() - 1})};
  if (options.average == "mean") return {frequencies, numpy::mean(density, {.axis = -1})};
  if (options.average != "median")
    throw ValueError(concat("csd: average must be 'median' or 'mean', got ", options.average));
  double bias = 1;
  for (int64_t i = 2; i < count; i += 2) bias += 1.0 / static_cast<double>(i + 1) - 1.0 / static_cast<double>(i);
  const auto middle = [](const Array& z) { return numpy::median(z, {.axis = -1}); };
  if (is_complex(density.dtype())) {
    const Array real = middle(lax::real(density));
    density = lax::complex(real, middle(lax::imag(density)));
  } else {
    density = middle(density);
  }
  return {frequencies, density / lax::convert_element_type(Array(bias), density.dtype(), false)};
}

std::pair<Array, Array> welch(const Array& x, const SpectrumOptions& options) {
  const auto [frequencies, density] = csd(x, std::nullopt, options);
  return {frequencies, numpy::real(density)};
}

std::pair<Array, Array> istft(const Array& input, const IstftOptions& options) {
  if (input.ndim() < 2) throw ValueError(concat("istft: the input must be at least 2d, got ", to_string(input.type())));
  const int64_t rank = input.ndim();
  const int64_t frequency_axis = canonical_axis("istft", options.freq_axis, rank);
  int64_t time_axis = canonical_axis("istft", options.time_axis, rank);
  if (frequency_axis == time_axis)
    throw ValueError(concat("istft: the time and frequency axes must differ, both are ", time_axis));
  Array z = lax::convert_element_type(input, complex_dtype(inexact_dtype(input.dtype())), false);
  const int64_t natural = options.input_onesided ? 2 * (z.shape(frequency_axis) - 1) : z.shape(frequency_axis);
  const int64_t nperseg = options.nperseg.value_or(0) ? *options.nperseg : natural;
  if (nperseg < 1) throw ValueError(concat("istft: nperseg must be a positive integer, got ", nperseg));
  const int64_t nfft =
      options.nfft ? *options.nfft : natural + (options.input_onesided && nperseg == natural + 1 ? 1 : 0);
  if (nfft < nperseg)
    throw ValueError(concat("istft: the FFT length (", nfft, ") must be at least nperseg (", nperseg, ")"));
  const int64_t noverlap = options.noverlap.value_or(0) ? *options.noverlap : nperseg / 2;
  if (noverlap >= nperseg)
    throw ValueError(concat("istft: noverlap must be less than nperseg, got ", noverlap, " and ", nperseg));
  const int64_t step = nperseg - noverlap;
  if (time_axis != rank - 1 || frequency_axis != rank - 2)
    z = numpy::moveaxis(z, Ints{frequency_axis, time_axis}, Ints{-2, -1});
  const numpy::fft::FftOptions transform = {.n = options.nfft, .axis = -2};
  Array frames = options.input_onesided ? numpy::fft::irfft(z, transform) : numpy::fft::ifft(z, transform);
  frames = frames(ellipsis, slice(0, nperseg), slice());
  Array window;
  if (const std::string* name = std::get_if<std::string>(&options.window)) {
    window = named_window(*name, nperseg, frames.dtype());
  } else {
    window = std::get<Array>(options.window);
    if (window.ndim() != 1 || window.size() != nperseg) {
      throw ValueError(concat("istft: window must be 1-D with ", nperseg, " entries, got ", to_string(window.type())));
    }
  }
  frames = frames * numpy::sum(window);
  const Array column = lax::broadcast_to_rank(lax::expand_dims(window, {1}), frames.ndim());
  const auto turned = [](const Array& x) { return numpy::swapaxes(x, -2, -1); };
  Array x = overlapped(turned(frames * column), step);
  Shape repeated = column.shape();
  repeated.back() = frames.shape(-1);
  Array norm = overlapped(turned(broadcast_to("istft", column * column, repeated)), step);
  if (options.boundary) {
    const int64_t half = nperseg / 2;
    x = x(ellipsis, slice(half, -half));
    norm = norm(ellipsis, slice(half, -half));
  }
  x = x / numpy::where(norm > 1e-10, norm, 1.0);
  if (x.ndim() > 1 && time_axis != rank - 1) {
    if (frequency_axis < time_axis) --time_axis;
    x = numpy::moveaxis(x, -1, time_axis);
  }
  return {lax::iota(real_dtype(x.dtype()), x.shape(0)) / options.fs, x};
}

}  // namespace capibara::jax::scipy::signal
