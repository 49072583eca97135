// Table rows for jax.numpy.fft.
#include <capibara/numpy/fft.h>

#include <set>

#include "library/table/families.h"

namespace capibara::library {

namespace fft = jax::numpy::fft;

namespace {

// A sequence in Python syntax: [0, 1] or (0, 1).
std::string written(const Value& value) {
  const Sequence* sequence = value.sequence();
  if (!sequence) return value.type_name();
  std::string text(1, sequence->is_list ? '[' : '(');
  for (const Value& item : sequence->items) {
    if (text.size() > 1) text += ", ";
    const int64_t* number = item.get_if<int64_t>();
    text += number ? std::to_string(*number) : item.type_name();
  }
  if (!sequence->is_list && sequence->items.size() == 1) text += ',';
  return text + (sequence->is_list ? ']' : ')');
}

fft::FftOptions one_axis(const Arguments& a) {
  if (a["axis"].sequence()) {
    throw ValueError(concat("jax.numpy.fft.", a.function(),
                            " does not support multiple axes. Please use jax.numpy.fft.", a.function(),
                            "n. Got axis = ", written(a["axis"]), "."));
  }
  return {.n = a.optional_integer("n"), .axis = a.optional_integer("axis"), .norm = a.text("norm")};
}

fft::FftnOptions any_axes(const Arguments& a) {
  const std::optional<Ints> axes = a.optional_ints("axes");
  if (axes && std::set<int64_t>(axes->begin(), axes->end()).size() != axes->size()) {
    throw ValueError(
        concat("jax.numpy.fft.", a.function(), " does not support repeated axes. Got axes ", written(a["axes"]), "."));
  }
  return {.s = a.optional_ints("s"), .axes = axes, .norm = a.text("norm")};
}

fft::Fft2Options two_axes(const Arguments& a) {
  const Ints axes = a.ints("axes");
  if (axes.size() != 2) {
    throw ValueError(
        concat("jax.numpy.fft.", a.function(), " only supports 2 axes. Got axes = ", written(a["axes"]), "."));
  }
  return {.s = a.optional_ints("s"), .axes = axes, .norm = a.text("norm")};
}

// The number of samples and their spacing, once both are known to be scalars.
template <class Frequencies>
Value frequencies(const Arguments& a, Frequencies make) {
  for (const char* name : {"n", "d"}) {
    if (a[name].sequence()) {
      throw ValueError(concat("The ", name, " argument of jax.numpy.fft.", a.function(), " only takes ",
                              name == std::string_view("n") ? "an int" : "a single value", ". Got ", name, " = ",
                              written(a[name]), "."));
    }
  }
  const fft::FrequencyOptions spacing{.d = a.array("d"), .dtype = a.optional_dtype("dtype")};
  return make(a.integer("n"), spacing);
}

const Function numpy_fft_functions[] = {
    {"fft", "a, n=None, axis=-1, norm=None",
     [](const Arguments& a) -> Value { return fft::fft(a.array("a"), one_axis(a)); },
     "The discrete Fourier transform along one axis."},
    {"ifft", "a, n=None, axis=-1, norm=None",
     [](const Arguments& a) -> Value { return fft::ifft(a.array("a"), one_axis(a)); },
     "The inverse of the discrete Fourier transform along one axis."},
    {"rfft", "a, n=None, axis=-1, norm=None",
     [](const Arguments& a) -> Value { return fft::rfft(a.array("a"), one_axis(a)); },
     "The non-negative frequencies of the transform of real data along one axis."},
    {"irfft", "a, n=None, axis=-1, norm=None",
     [](const Arguments& a) -> Value { return fft::irfft(a.array("a"), one_axis(a)); },
     "Real data from the non-negative frequencies of its transform: the inverse of rfft."},
    {"hfft", "a, n=None, axis=-1, norm=None",
     [](const Arguments& a) -> Value { return fft::hfft(a.array("a"), one_axis(a)); },
     "The real spectrum of a signal with Hermitian symmetry, given by its first half."},
    {"ihfft", "a, n=None, axis=-1, norm=None",
     [](const Arguments& a) -> Value { return fft::ihfft(a.array("a"), one_axis(a)); },
     "The first half of the signal with Hermitian symmetry that has this real spectrum."},
    {"fftn", "a, s=None, axes=None, norm=None",
     [](const Arguments& a) -> Value { return fft::fftn(a.array("a"), any_axes(a)); },
     "The discrete Fourier transform along several axes, by default all."},
    {"ifftn", "a, s=None, axes=None, norm=None",
     [](const Arguments& a) -> Value { return fft::ifftn(a.array("a"), any_axes(a)); }, "The inverse of fftn."},
    {"rfftn", "a, s=None, axes=None, norm=None",
     [](const Arguments& a) -> Value { return fft::rfftn(a.array("a"), any_axes(a)); },
     "The transform of real data along several axes; only non-negative frequencies along the last."},
    {"irfftn", "a, s=None, axes=None, norm=None",
     [](const Arguments& a) -> Value { return fft::irfftn(a.array("a"), any_axes(a)); }, "The inverse of rfftn."},
    {"fft2", "a, s=None, axes=(-2, -1), norm=None",
     [](const Arguments& a) -> Value { return fft::fft2(a.array("a"), two_axes(a)); },
     "The discrete Fourier transform along two axes."},
    {"ifft2", "a, s=None, axes=(-2, -1), norm=None",
     [](const Arguments& a) -> Value { return fft::ifft2(a.array("a"), two_axes(a)); }, "The inverse of fft2."},
    {"rfft2", "a, s=None, axes=(-2, -1), norm=None",
     [](const Arguments& a) -> Value { return fft::rfft2(a.array("a"), two_axes(a)); },
     "The transform of real data along two axes; only non-negative frequencies along the last."},
    {"irfft2", "a, s=None, axes=(-2, -1), norm=None",
     [](const Arguments& a) -> Value { return fft::irfft2(a.array("a"), two_axes(a)); }, "The inverse of rfft2."},
    {"fftfreq", "n, d=1.0, *, dtype=None, device=None",
     [](const Arguments& a) -> Value { return frequencies(a, fft::fftfreq); },
     "The frequencies of the entries of a transform of n samples."},
    {"rfftfreq", "n, d=1.0, *, dtype=None, device=None",
     [](const Arguments& a) -> Value { return frequencies(a, fft::rfftfreq); },
     "The frequencies of the entries of rfft of n samples."},
    {"fftshift", "x, axes: int | Sequence[int] = None",
     [](const Arguments& a) -> Value { return fft::fftshift(a.array("x"), a.axis("axes")); },
     "Moves the zero frequency to the middle of each axis."},
    {"ifftshift", "x, axes: int | Sequence[int] = None",
     [](const Arguments& a) -> Value { return fft::ifftshift(a.array("x"), a.axis("axes")); },
     "The inverse of fftshift."},
};

}  // namespace

Family numpy_fft() { return numpy_fft_functions; }

}  // namespace capibara::library
