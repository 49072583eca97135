// Fourier transforms: every length against the definition, real transforms, derivatives and errors.
#include <capibara/capibara.h>

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

namespace capibara {
namespace {

namespace lax = jax::lax;
using Complex = std::complex<double>;

std::vector<Complex> signal(int64_t n) {
  std::vector<Complex> values;
  for (int64_t i = 0; i < n; ++i)
    values.emplace_back(static_cast<double>((i * 37) % 11) - 5, static_cast<double>((i * 17) % 7) - 3);
  return values;
}

std::vector<Complex> by_definition(const std::vector<Complex>& x) {
  auto n = static_cast<int64_t>(x.size());
  std::vector<Complex> out(x.size());
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t i = 0; i < n; ++i) {
      double angle = -2 * std::numbers::pi * static_cast<double>((i * k) % n) / static_cast<double>(n);
      out[static_cast<std::size_t>(k)] += x[static_cast<std::size_t>(i)] * std::polar(1.0, angle);
    }
  }
  return out;
}

TEST(Fft, OfEveryLengthIsTheDefinition) {
  auto x64 = jax::enable_x64();
  for (int64_t n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17, 19, 30, 49, 60, 64, 97, 100, 101, 169, 210, 257}) {
    std::vector<Complex> x = signal(n), expected = by_definition(x);
    std::vector<Complex> got = lax::fft(array<Complex>(x), lax::FftType::fft, {n}).to_vector<Complex>();
    for (std::size_t k = 0; k < got.size(); ++k) EXPECT_LT(std::abs(got[k] - expected[k]), 1e-10) << n << " at " << k;
  }
}

TEST(Fft, InverseUndoesIt) {
  auto x64 = jax::enable_x64();
  for (int64_t n : {6, 31, 128}) {
    std::vector<Complex> x = signal(n);
    Array there = lax::fft(array<Complex>(x), lax::FftType::fft, {n});
    std::vector<Complex> back = lax::fft(there, lax::FftType::ifft, {n}).to_vector<Complex>();
    for (std::size_t k = 0; k < back.size(); ++k) EXPECT_LT(std::abs(back[k] - x[k]), 1e-12);
  }
}

TEST(Fft, RealTransformsKeepHalf) {
  for (int64_t n : {7, 8}) {
    std::vector<float> x;
    for (int64_t i = 0; i < n; ++i) x.push_back(static_cast<float>((i * 5) % 3));
    Array half = lax::fft(array<float>(x), lax::FftType::rfft, {n});
    EXPECT_EQ(half.shape(), (Shape{n / 2 + 1}));
    EXPECT_EQ(half.dtype(), DType::complex64);
    std::vector<float> back = lax::fft(half, lax::FftType::irfft, {n}).to_vector<float>();
    for (std::size_t k = 0; k < back.size(); ++k) EXPECT_NEAR(back[k], x[k], 1e-5);
  }
}

TEST(Fft, OfThreeDimensionsIsOneAfterAnother) {
  Array x =
      lax::complex(lax::reshape(lax::convert_element_type(lax::iota(DType::int32, 24), DType::float32), {2, 3, 4}),
                   lax::zeros(ArrayType{.shape = {2, 3, 4}}));
  Array all = lax::fft(x, lax::FftType::fft, {2, 3, 4});
  Array steps = lax::fft(x, lax::FftType::fft, {4});
  for (Ints order : {Ints{0, 2, 1}, Ints{2, 1, 0}}) {
    steps = lax::transpose(steps, order);
    steps = lax::transpose(lax::fft(steps, lax::FftType::fft, {steps.shape(-1)}), order);
  }
  auto a = all.to_vector<Complex>(), b = steps.to_vector<Complex>();
  for (std::size_t k = 0; k < a.size(); ++k) EXPECT_LT(std::abs(a[k] - b[k]), 1e-4);
}

TEST(FftGrad, OfTheEnergyIsTheSignal) {
  // By Parseval the energy of the spectrum is n times that of the signal.
  auto energy = [](Array x) {
    Array z = lax::fft(x, lax::FftType::fft, {5});
    return lax::reduce_sum(lax::add(lax::square(lax::real(z)), lax::square(lax::imag(z))), {{0}});
  };
  const std::vector<float> x = {1, -2, 3, 0, 1};
  std::vector<float> gradient = jax::grad(energy)(array<float>(x)).to_vector<float>();
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(gradient[i], 10 * x[i], 1e-4);
}

TEST(FftErrors, SayWhatWasExpected) {
  Array z = array<std::complex<float>>(std::vector<std::complex<float>>{{1, 0}, {2, 0}});
  EXPECT_THROW(lax::fft(z, lax::FftType::rfft, {2}), ValueError);
  EXPECT_THROW(lax::fft(z, lax::FftType::fft, {3}), ValueError);
  EXPECT_THROW(lax::fft(z, lax::FftType::fft, {1, 2}), ValueError);
  EXPECT_THROW(lax::fft(z, lax::FftType::irfft, {7}), ValueError);
}

}  // namespace
}  // namespace capibara
