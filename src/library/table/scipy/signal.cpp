// Table rows for jax.scipy.signal.
#include <capibara/scipy/signal.h>

#include "library/table/families.h"
#include "library/table/lax/arguments.h"

namespace capibara::library {

namespace signal = jax::scipy::signal;

namespace {

signal::ConvolveOptions convolution(const Arguments& a) {
  return {.mode = a.text("mode"), .method = a.text("method"), .precision = precision_text(a, "precision")};
}

signal::Convolve2dOptions convolution2d(const Arguments& a) {
  const Value& fill = a["fillvalue"];
  const bool zero = fill.is_number() && a.real("fillvalue") == 0;
  if (a.text("boundary") != "fill" || !zero) {
    throw NotImplementedError(concat(a.function(), "() only supports boundary='fill', fillvalue=0"));
  }
  return {.mode = a.text("mode"), .precision = precision_text(a, "precision")};
}

signal::Window window(const Arguments& a) {
  if (const std::string* name = a["window"].get_if<std::string>()) return *name;
  if (const Sequence* parts = a["window"].sequence();
      parts && !parts->items.empty() && parts->items[0].get_if<std::string>()) {
    if (parts->items.size() == 1) return *parts->items[0].get_if<std::string>();
    throw NotImplementedError(
        concat(a.function(), ": windows with parameters are not supported; pass the window as an array"));
  }
  return a.array_like("window");
}

signal::Detrending trend(const Arguments& a) {
  const Value& value = a["detrend"];
  if (const std::string* type = value.get_if<std::string>()) return *type;
  if (const Callable* function = value.get_if<Callable>()) {
    return [function = *function](const Array& x) { return array_of(function({x}), "detrend"); };
  }
  if (a.flag("detrend"))
    throw ValueError(concat(a.function(), ": detrend must be a kind of trend, a function or False, got True"));
  return std::monostate{};
}

signal::SpectrumOptions spectrum(const Arguments& a) {
  return {.fs = a.array("fs"),
          .window = window(a),
          .nperseg = a.optional_integer("nperseg"),
          .noverlap = a.optional_integer("noverlap"),
          .nfft = a.optional_integer("nfft"),
          .detrend = trend(a),
          .return_onesided = a.flag("return_onesided"),
          .scaling = a.text("scaling"),
          .axis = a.integer("axis"),
          .average = a.text("average")};
}

const Function scipy_signal_functions[] = {
    {"convolve", "in1, in2, mode='full', method='auto', precision=None",
     [](const Arguments& a) -> Value { return signal::convolve(a.array("in1"), a.array("in2"), convolution(a)); },
     "The convolution of two arrays in all dimensions."},
    {"convolve2d", "in1, in2, mode='full', boundary='fill', fillvalue=0, precision=None",
     [](const Arguments& a) -> Value { return signal::convolve2d(a.array("in1"), a.array("in2"), convolution2d(a)); },
     "The convolution of two matrices."},
    {"correlate", "in1, in2, mode='full', method='auto', precision=None",
     [](const Arguments& a) -> Value { return signal::correlate(a.array("in1"), a.array("in2"), convolution(a)); },
     "The cross-correlation of two arrays in all dimensions."},
    {"correlate2d", "in1, in2, mode='full', boundary='fill', fillvalue=0, precision=None",
     [](const Arguments& a) -> Value { return signal::correlate2d(a.array("in1"), a.array("in2"), convolution2d(a)); },
     "The cross-correlation of two matrices."},
    {"csd",
     "x, y: ArrayLike | None, fs=1.0, window: str | ArrayLike = 'hann', nperseg=None, noverlap=None, nfft=None, "
     "detrend: str | bool = 'constant', return_onesided=True, scaling='density', axis=-1, average='mean' -> "
     "tuple[Array, Array]",
     [](const Arguments& a) -> Value { return signal::csd(a.array("x"), a.optional_array("y"), spectrum(a)); },
     "Frequencies and the cross spectral density of two signals, by Welch's method."},
    {"detrend", "data, axis=-1, type: str = 'linear', bp=0, overwrite_data=None",
     [](const Arguments& a) -> Value {
       a.require_absent("overwrite_data");
       return signal::detrend(a.array_like("data"),
                              {.axis = a.integer("axis"), .type = a.text("type"), .bp = a.ints("bp")});
     },
     "The data without its mean, or without the best-fitting lines of its parts."},
    {"fftconvolve", "in1, in2, mode='full', axes: int | Sequence[int] = None",
     [](const Arguments& a) -> Value {
       return signal::fftconvolve(a.array("in1"), a.array("in2"),
                                  {.mode = a.text("mode"), .axes = a.optional_ints("axes")});
     },
     "The convolution of two arrays by Fourier transforms."},
    {"istft",
     "Zxx, fs=1.0, window: str | ArrayLike = 'hann', nperseg=None, noverlap=None, nfft=None, input_onesided=True, "
     "boundary=True, time_axis=-1, freq_axis=-2 -> tuple[Array, Array]",
     [](const Arguments& a) -> Value {
       return signal::istft(a.array("Zxx"), {.fs = a.array("fs"),
                                             .window = window(a),
                                             .nperseg = a.optional_integer("nperseg"),
                                             .noverlap = a.optional_integer("noverlap"),
                                             .nfft = a.optional_integer("nfft"),
                                             .input_onesided = a.flag("input_onesided"),
                                             .boundary = a.flag("boundary"),
                                             .time_axis = a.integer("time_axis"),
                                             .freq_axis = a.integer("freq_axis")});
     },
     "Times and signal of the inverse short-time Fourier transform."},
    {"stft",
     "x, fs=1.0, window: str | ArrayLike = 'hann', nperseg=256, noverlap=None, nfft=None, detrend: str | bool = False, "
     "return_onesided=True, boundary: str | None = 'zeros', padded=True, axis=-1 -> tuple[Array, Array, Array]",
     [](const Arguments& a) -> Value {
       return signal::stft(a.array("x"), {.fs = a.array("fs"),
                                          .window = window(a),
                                          .nperseg = a.optional_integer("nperseg"),
                                          .noverlap = a.optional_integer("noverlap"),
                                          .nfft = a.optional_integer("nfft"),
                                          .detrend = trend(a),
                                          .return_onesided = a.flag("return_onesided"),
                                          .boundary = a.text("boundary"),
                                          .padded = a.flag("padded"),
                                          .axis = a.integer("axis")});
     },
     "Frequencies, times, and the Fourier transforms of overlapping segments."},
    {"welch",
     "x, fs=1.0, window: str | ArrayLike = 'hann', nperseg=None, noverlap=None, nfft=None, detrend: str | bool = "
     "'constant', return_onesided=True, scaling='density', axis=-1, average='mean' -> tuple[Array, Array]",
     [](const Arguments& a) -> Value { return signal::welch(a.array("x"), spectrum(a)); },
     "Frequencies and the power spectral density, by Welch's method."},
};

}  // namespace

Family scipy_signal() { return scipy_signal_functions; }

}  // namespace capibara::library
