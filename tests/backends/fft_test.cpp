// Fourier transforms of the CPU backend against the reference kernel, which computes in double precision.
#include "backends/kernel_cases.h"

namespace capibara::cpu {
namespace {

enum Kind : int64_t { forward, inverse, from_real, to_real };

class Fourier : public KernelTest {
 protected:
  // `shape` is the shape of the real side of a real transform.
  void check_transform(Kind kind, bool wide, Shape shape, std::size_t dimensions = 1) {
    const Ints lengths(shape.end() - static_cast<std::ptrdiff_t>(dimensions), shape.end());
    double count = 1;
    for (int64_t length : lengths) count *= static_cast<double>(length);
    if (kind == to_real) shape.back() = shape.back() / 2 + 1;
    const DType complex = wide ? DType::complex128 : DType::complex64, real = wide ? DType::float64 : DType::float32;
    // Sums of `count` numbers up to 2 are about the square root of `count`; inverse transforms divide by `count`.
    double size = std::sqrt(count);
    if (kind == inverse || kind == to_real) size /= count;
    const double units = wide ? 1.2e-14 : 4e-6;
    check_kernel({"fft",
                  {type_of(kind == from_real ? real : complex, shape)},
                  {{"fft_lengths", lengths}, {"fft_type", static_cast<int64_t>(kind)}},
                  {},
                  {units * size, 0}});
  }

  void check_all(const Shape& shape, std::size_t dimensions = 1) {
    for (bool wide : {false, true}) {
      for (Kind kind : {forward, inverse, from_real, to_real}) check_transform(kind, wide, shape, dimensions);
    }
  }
};

TEST_F(Fourier, OfEveryLength) {
  for (int64_t n = 1; n <= 200; ++n) {
    check_all({n});
    check_all({19, n});
  }
}

TEST_F(Fourier, OfLongLines) {
  for (int64_t n : {256, 512, 1000, 1024, 1155, 2048, 4725, 11025, 16384, 65536}) check_all({n});
  for (int64_t n : {211, 997, 1009, 2 * 499, 4099, 10007, 65537}) check_all({n});
  check_all({5, 4096});
  check_all({33, 2187});
  check_all({17, 1009});
}

// Lengths that are multiples of the squared lane count, for every kind of processor, and lines processed together.
TEST_F(Fourier, WithinLines) {
  for (int64_t n : {16, 48, 64, 112, 128, 192, 256, 320, 768, 1280, 1792, 2048, 2560, 4096, 8192}) check_all({3, n});
  for (int64_t lines : {1, 2, 5, 16, 35}) {
    for (int64_t n : {8, 16, 32, 64, 128, 512}) check_all({lines, n});
  }
}

TEST_F(Fourier, OfSeveralDimensions) {
  check_all({33, 35}, 2);
  check_all({5, 7, 9}, 3);
  check_all({5, 7, 9}, 2);
  check_all({3, 50, 53}, 2);
  check_all({16, 24, 20}, 3);
  check_all({2, 128, 96}, 2);
  // Slabs of the last two dimensions, and columns that fill whole vectors.
  check_all({17, 12, 10}, 2);
  check_all({16, 9, 32}, 3);
  check_all({3, 16, 64, 32}, 3);
  check_all({2, 64, 512}, 2);
}

}  // namespace
}  // namespace capibara::cpu
