// Reference kernel of the discrete Fourier transform: mixed radix in double precision, Bluestein for large primes.
#include <algorithm>
#include <cmath>
#include <complex>
#include <map>
#include <memory>
#include <numbers>
#include <vector>

#include "backends/reference/regions.h"
#include "core/runtime/interrupt.h"
#include "lax/math/denormals.h"

namespace capibara::reference {

namespace {

using Complex = std::complex<double>;

Complex times(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// exp(-2 pi i k / n), reduced to the octant where the argument is small.
Complex root(int64_t k, int64_t n) {
  k %= n;
  if (8 * k > n && 8 * k <= 3 * n) {
    double angle = 2 * std::numbers::pi * (static_cast<double>(4 * k - n) / static_cast<double>(4 * n));
    return {-std::sin(angle), -std::cos(angle)};
  }
  if (8 * k > 3 * n && 8 * k <= 5 * n) {
    double angle = 2 * std::numbers::pi * (static_cast<double>(2 * k - n) / static_cast<double>(2 * n));
    return {-std::cos(angle), std::sin(angle)};
  }
  if (8 * k > 5 * n && 8 * k < 7 * n) {
    double angle = 2 * std::numbers::pi * (static_cast<double>(4 * k - 3 * n) / static_cast<double>(4 * n));
    return {std::sin(angle), std::cos(angle)};
  }
  double angle = 2 * std::numbers::pi * (static_cast<double>(8 * k >= 7 * n ? k - n : k) / static_cast<double>(n));
  return {std::cos(angle), -std::sin(angle)};
}

// A forward transform of one length; O(n log n) for every length.
class Plan {
 public:
  explicit Plan(int64_t n) : n_(n) {
    int64_t rest = n;
    for (int64_t factor : {4, 2, 3, 5, 7, 11, 13}) {
      for (; rest % factor == 0 && rest > 1; rest /= factor) factors_.push_back(factor);
    }
    if (rest > 1) {
      prepare_bluestein();
    } else {
      roots_.resize(static_cast<std::size_t>(n));
      for (int64_t k = 0; k < n; ++k) roots_[static_cast<std::size_t>(k)] = root(k, n);
    }
  }

  void forward(const Complex* in, Complex* out) const {
    if (n_ == 1)
      out[0] = in[0];
    else if (chirp_.empty())
      mixed_radix(in, out, n_, 1, 0);
    else
      bluestein(in, out);
  }

 private:
  // Transforms n elements at distance `stride`, splitting off one factor per level.
  void mixed_radix(const Complex* in, Complex* out, int64_t n, int64_t stride, std::size_t level) const {
    if (n == 1) {
      out[0] = in[0];
      return;
    }
    if (n >= 4096) poll_stop();
    int64_t radix = factors_[level], m = n / radix;
    for (int64_t r = 0; r < radix; ++r) mixed_radix(in + r * stride, out + r * m, m, stride * radix, level + 1);
    Complex terms[13];
    int64_t step = n_ / n;  // roots of this level are every step-th of the whole
    for (int64_t k = 0; k < m; ++k) {
      for (int64_t r = 0; r < radix; ++r)
        terms[r] = times(out[r * m + k], roots_[static_cast<std::size_t>(r * k * step)]);
      if (radix == 2) {
        out[k] = terms[0] + terms[1];
        out[k + m] = terms[0] - terms[1];
      } else if (radix == 4) {
        Complex a = terms[0] + terms[2], b = terms[0] - terms[2], c = terms[1] + terms[3], d = terms[1] - terms[3];
        Complex turned(d.imag(), -d.real());  // -i d
        out[k] = a + c;
        out[k + m] = b + turned;
        out[k + 2 * m] = a - c;
        out[k + 3 * m] = b - turned;
      } else {
        for (int64_t q = 0; q < radix; ++q) {
          Complex sum = terms[0];
          for (int64_t r = 1; r < radix; ++r)
            sum += times(terms[r], roots_[static_cast<std::size_t>(r * q % radix * (n_ / radix))]);
          out[k + q * m] = sum;
        }
      }
    }
  }

  // A transform of any length as a convolution with a chirp, computed by power-of-two transforms.
  void prepare_bluestein() {
    int64_t size = 1;
    while (size < 2 * n_ - 1) size *= 2;
    chirp_.resize(static_cast<std::size_t>(n_));
    for (int64_t k = 0; k < n_; ++k) {
      chirp_[static_cast<std::size_t>(k)] = root(k * k % (2 * n_), 2 * n_);
    }
    inner_ = std::make_unique<Plan>(size);
    std::vector<Complex> kernel(static_cast<std::size_t>(size));
    for (int64_t k = 0; k < n_; ++k) {
      kernel[static_cast<std::size_t>(k)] = std::conj(chirp_[static_cast<std::size_t>(k)]);
      if (k != 0) kernel[static_cast<std::size_t>(size - k)] = kernel[static_cast<std::size_t>(k)];
    }
    kernel_.resize(kernel.size());
    inner_->forward(kernel.data(), kernel_.data());
  }

  void bluestein(const Complex* in, Complex* out) const {
    std::vector<Complex> work(kernel_.size()), spectrum(kernel_.size());
    for (int64_t k = 0; k < n_; ++k)
      work[static_cast<std::size_t>(k)] = times(in[k], chirp_[static_cast<std::size_t>(k)]);
    inner_->forward(work.data(), spectrum.data());
    for (std::size_t k = 0; k < kernel_.size(); ++k) spectrum[k] = std::conj(times(spectrum[k], kernel_[k]));
    inner_->forward(spectrum.data(), work.data());
    double scale = 1 / static_cast<double>(kernel_.size());
    for (int64_t k = 0; k < n_; ++k) {
      out[k] = times(std::conj(work[static_cast<std::size_t>(k)]) * scale, chirp_[static_cast<std::size_t>(k)]);
    }
  }

  int64_t n_;
  std::vector<int64_t> factors_;
  std::vector<Complex> roots_;
  std::vector<Complex> chirp_, kernel_;
  std::unique_ptr<Plan> inner_;
};

// Transforms one dimension of a row-major array in place; the inverse is not scaled.
void transform_axis(std::vector<Complex>& data, const Shape& shape, std::size_t axis, bool inverse) {
  int64_t n = shape[axis], stride = 1;
  if (n <= 0 || data.empty()) return;
  for (std::size_t d = axis + 1; d < shape.size(); ++d) stride *= shape[d];
  Plan plan(n);
  std::vector<Complex> line(static_cast<std::size_t>(n)), result(static_cast<std::size_t>(n));
  int64_t lines = static_cast<int64_t>(data.size()) / n;
  for (int64_t i = 0; i < lines; ++i) {
    poll_stop();
    Complex* first = data.data() + i / stride * n * stride + i % stride;
    for (int64_t k = 0; k < n; ++k)
      line[static_cast<std::size_t>(k)] = inverse ? std::conj(first[k * stride]) : first[k * stride];
    plan.forward(line.data(), result.data());
    for (int64_t k = 0; k < n; ++k)
      first[k * stride] =
          inverse ? std::conj(result[static_cast<std::size_t>(k)]) : result[static_cast<std::size_t>(k)];
  }
}

std::vector<Complex> load_complex(const Array& x) {
  std::vector<Complex> values(static_cast<std::size_t>(x.size()));
  load_range<Complex>(x.dtype(), x.raw_data(), x.size(), values.data());
  return values;
}

Arrays fft(const KernelArgs& args) {
  const math::FlushDenormals flush;
  const Array& x = args.inputs[0];
  const Ints& lengths = args.attrs.ints("fft_lengths");
  int64_t kind = args.attrs.integer("fft_type");  // 0 FFT, 1 IFFT, 2 RFFT, 3 IRFFT
  const ArrayType& out_type = args.output_types[0];
  Output out = allocate(out_type);
  if (out_type.size() == 0) return {out.array};
  std::vector<Complex> data = load_complex(x);
  Shape shape = x.shape();
  std::size_t first = shape.size() - lengths.size(), last = shape.size() - 1;
  bool inverse = kind == 1 || kind == 3;
  double scale = 1;
  if (inverse) {
    for (int64_t length : lengths) scale /= static_cast<double>(length);
  }
  if (kind == 3) {
    // The other dimensions first; then each half row is completed by its conjugate mirror image.
    for (std::size_t d = first; d < last; ++d) transform_axis(data, shape, d, true);
    int64_t n = lengths.back(), half = shape.back(), rows = static_cast<int64_t>(data.size()) / half;
    std::vector<Complex> full(static_cast<std::size_t>(rows * n));
    for (int64_t row = 0; row < rows; ++row) {
      const Complex* from = data.data() + row * half;
      Complex* to = full.data() + row * n;
      for (int64_t k = 0; k < n; ++k) to[k] = k < half ? from[k] : std::conj(from[n - k]);
      // The first coefficient and, for even lengths, the middle one of a real signal are real.
      to[0] = to[0].real();
      if (n % 2 == 0) to[n / 2] = to[n / 2].real();
    }
    data = std::move(full);
    shape.back() = n;
    transform_axis(data, shape, last, true);
    Elements<double> real(out_type.size());
    for (int64_t i = 0; i < real.size(); ++i) real[i] = data[static_cast<std::size_t>(i)].real() * scale;
    store_all<double>(out_type.dtype, out.data, real);
    return {out.array};
  }
  transform_axis(data, shape, last, inverse);
  if (kind == 2) {
    int64_t n = lengths.back(), half = n / 2 + 1, rows = static_cast<int64_t>(data.size()) / n;
    std::vector<Complex> kept(static_cast<std::size_t>(rows * half));
    for (int64_t row = 0; row < rows; ++row) std::copy_n(data.data() + row * n, half, kept.data() + row * half);
    data = std::move(kept);
    shape.back() = half;
  }
  for (std::size_t d = last; d-- > first;) transform_axis(data, shape, d, inverse);
  if (inverse) {
    for (Complex& value : data) value *= scale;
  }
  store_range<Complex>(out_type.dtype, out.data, out_type.size(), data.data());
  return {out.array};
}

}  // namespace

KernelList fft_kernels() { return {{"fft", fft}}; }

}  // namespace capibara::reference
